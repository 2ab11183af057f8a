// SPDX-License-Identifier: Apache-2.0
// A reactor without threads, descriptors or real time, for unit tests and simulation. Time moves
// only when told to, and the same inputs give the same order of events, always.
#pragma once

#include <deque>

#include "common/runtime/reactor.h"

namespace vjbod {

class ManualReactor final : public Reactor {
 public:
  explicit ManualReactor(uint64_t random_seed = 1) : Reactor(random_seed) {}
  ~ManualReactor() override;

  // Runs everything that can run without time passing.
  void run_until_idle();
  // Moves time on, running each timer at its own moment.
  void advance(Duration by);
  // As a stopped process or a suspended machine: nothing runs meanwhile, and what is due is late.
  void sleep_through(Duration by);
  // Moves time to the next timer and runs it; false when nothing is armed.
  bool advance_to_next_timer();
  // Runs, letting time pass from timer to timer, until `done()` holds or `limit` has passed.
  // Returns done().
  bool run_until(const std::function<bool()>& done, Duration limit);

  TimePoint now() const override { return now_; }
  void post(std::function<void()> work) override { posted_.push_back(std::move(work)); }
  bool on_owner_thread() const override { return true; }
  // There are no descriptors in a simulation: aborts.
  std::unique_ptr<FdWatch> watch_readable(int fd, std::function<void()> on_readable) override;

 private:
  TimePoint now_{};
  std::deque<std::function<void()>> posted_;
};

}  // namespace vjbod
