// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/timer_queue.h"

#include <utility>

#include "common/base/check.h"
#include "common/runtime/reactor.h"

namespace vjbod {

Timer::Timer(Reactor& reactor, std::function<void()> on_expired)
    : reactor_(reactor), on_expired_(std::move(on_expired)) {}

Timer::~Timer() {
  cancel();
}

void Timer::arm_at(TimePoint deadline) {
  cancel();
  reactor_.timers().add(*this, deadline);
}

void Timer::arm_after(Duration delay) {
  arm_at(reactor_.now() + delay);
}

void Timer::cancel() {
  if (armed()) reactor_.timers().remove(*this);
}

bool TimerQueue::before(const Timer& a, const Timer& b) {
  if (a.deadline_ != b.deadline_) return a.deadline_ < b.deadline_;
  return a.sequence_ < b.sequence_;
}

void TimerQueue::place(size_t position, Timer* timer) {
  heap_[position] = timer;
  timer->position_ = position;
}

void TimerQueue::sift_up(size_t position) {
  Timer* moving = heap_[position];
  while (position > 0) {
    size_t parent = (position - 1) / 2;
    if (!before(*moving, *heap_[parent])) break;
    place(position, heap_[parent]);
    position = parent;
  }
  place(position, moving);
}

void TimerQueue::sift_down(size_t position) {
  Timer* moving = heap_[position];
  for (;;) {
    size_t child = 2 * position + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && before(*heap_[child + 1], *heap_[child])) ++child;
    if (!before(*heap_[child], *moving)) break;
    place(position, heap_[child]);
    position = child;
  }
  place(position, moving);
}

void TimerQueue::add(Timer& timer, TimePoint deadline) {
  VJBOD_CHECK(!timer.armed());
  timer.deadline_ = deadline;
  timer.sequence_ = next_sequence_++;
  heap_.push_back(&timer);
  timer.position_ = heap_.size() - 1;
  sift_up(timer.position_);
}

void TimerQueue::remove(Timer& timer) {
  size_t hole = timer.position_;
  VJBOD_CHECK(hole < heap_.size() && heap_[hole] == &timer);
  Timer* last = heap_.back();
  heap_.pop_back();
  timer.position_ = Timer::not_queued;
  if (last == &timer) return;
  place(hole, last);
  sift_up(hole);
  sift_down(last->position_);
}

std::optional<TimePoint> TimerQueue::next_deadline() const {
  if (heap_.empty()) return std::nullopt;
  return heap_.front()->deadline_;
}

size_t TimerQueue::run_due(TimePoint now) {
  const uint64_t newest = next_sequence_;  // timers armed from here on belong to the next call
  size_t count = 0;
  while (!heap_.empty()) {
    Timer& timer = *heap_.front();
    if (timer.deadline_ > now || timer.sequence_ >= newest) break;
    remove(timer);
    ++count;
    timer.on_expired_();  // may destroy the timer
  }
  return count;
}

}  // namespace vjbod
