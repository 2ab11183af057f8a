// SPDX-License-Identifier: Apache-2.0
// The reactor of the daemons: one Boost.Asio io_context run by one thread.
// A turn: wait for an event, take in all events that are ready, run due timers, run deferred work.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "common/runtime/reactor.h"

namespace boost::asio {
class io_context;
}

namespace vjbod {

class AsioReactor final : public Reactor {
 public:
  explicit AsioReactor(uint64_t random_seed);
  ~AsioReactor() override;

  // Runs on the calling thread, which becomes the owner, until stop().
  void run();
  // Any thread. Work already posted is run before run() returns.
  void stop();
  // The same until `done()` holds at the end of a turn, or `limit` has passed. Returns done(). For
  // tests and tools.
  bool run_until(const std::function<bool()>& done, Duration limit);

  // For the few files that use Asio themselves: they include its headers, which are too expensive
  // for one that nearly everything includes.
  boost::asio::io_context& io_context();

  TimePoint now() const override;
  void post(std::function<void()> work) override;
  bool on_owner_thread() const override { return owner_ == std::this_thread::get_id(); }
  std::unique_ptr<FdWatch> watch_readable(int fd, std::function<void()> on_readable) override;

 private:
  void turn();
  void arm_wakeup();

  struct Loop;

  const std::unique_ptr<Loop> loop_;
  TimePoint wakeup_at_ = TimePoint::max();
  // Read once a turn, and only after the wait, or whoever handles the event that ended it would set
  // his timers by the time at which the wait began.
  mutable std::optional<TimePoint> now_;
  bool running_ = false;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::thread::id> owner_;
};

}  // namespace vjbod
