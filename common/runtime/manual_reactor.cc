// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/manual_reactor.h"

#include <utility>

namespace vjbod {

ManualReactor::~ManualReactor() {
  run_until_idle();
}

void ManualReactor::run_until_idle() {
  for (;;) {
    bool ran = timers().run_due(now_) > 0;
    while (!posted_.empty()) {
      std::function<void()> work = std::move(posted_.front());
      posted_.pop_front();
      work();
      ran = true;
    }
    ran = run_deferred() || ran;
    if (!ran) return;
  }
}

void ManualReactor::advance(Duration by) {
  const TimePoint end = now_ + by;
  run_until_idle();
  for (auto next = timers().next_deadline(); next && *next <= end;
       next = timers().next_deadline()) {
    now_ = std::max(now_, *next);
    run_until_idle();
  }
  now_ = end;
}

void ManualReactor::sleep_through(Duration by) {
  now_ += by;
  run_until_idle();
}

bool ManualReactor::advance_to_next_timer() {
  run_until_idle();
  auto next = timers().next_deadline();
  if (!next) return false;
  now_ = std::max(now_, *next);
  run_until_idle();
  return true;
}

bool ManualReactor::run_until(const std::function<bool()>& done, Duration limit) {
  const TimePoint end = now_ + limit;
  run_until_idle();
  while (!done()) {
    auto next = timers().next_deadline();
    if (!next || *next > end) {
      now_ = end;
      return false;
    }
    advance_to_next_timer();
  }
  return true;
}

std::unique_ptr<FdWatch> ManualReactor::watch_readable(int fd, std::function<void()>) {
  VJBOD_CHECK(false, "a manual reactor cannot watch descriptor {}", fd);
  return nullptr;
}

}  // namespace vjbod
