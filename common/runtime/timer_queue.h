// SPDX-License-Identifier: Apache-2.0
// The armed timers of one reactor: earliest deadline first, equal deadlines in the order they were
// armed (a simulation depends on that). Arming and cancelling allocate nothing once the queue has
// grown to its working size.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "common/runtime/clock.h"

namespace vjbod {

class Reactor;
class TimerQueue;

// A one-shot deadline with a fixed callback, owned by whatever state needs it: destroying it
// cancels it, so a timer can never outlive its owner. Used on its reactor's thread only.
class Timer {
 public:
  Timer(Reactor& reactor, std::function<void()> on_expired);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Arms, or re-arms with a new deadline. The callback runs from the reactor's loop, never from
  // inside this call.
  void arm_at(TimePoint deadline);
  void arm_after(Duration delay);
  void cancel();
  bool armed() const { return position_ != not_queued; }
  TimePoint deadline() const { return deadline_; }

 private:
  friend class TimerQueue;
  static constexpr size_t not_queued = ~size_t{0};

  Reactor& reactor_;
  std::function<void()> on_expired_;
  TimePoint deadline_{};
  uint64_t sequence_ = 0;
  size_t position_ = not_queued;  // index in the queue's heap
};

class TimerQueue {
 public:
  void add(Timer& timer, TimePoint deadline);
  void remove(Timer& timer);
  std::optional<TimePoint> next_deadline() const;
  // Runs the callbacks of every timer due at `now`; those that a callback arms for `now` wait for
  // the next call. Returns how many ran.
  size_t run_due(TimePoint now);

 private:
  static bool before(const Timer& a, const Timer& b);
  void sift_up(size_t position);
  void sift_down(size_t position);
  void place(size_t position, Timer* timer);

  std::vector<Timer*> heap_;
  uint64_t next_sequence_ = 0;
};

}  // namespace vjbod
