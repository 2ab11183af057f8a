// SPDX-License-Identifier: Apache-2.0
// Decides whether a buffered write may be made on the shard itself. Usually that is a copy into
// the page cache, several times faster than handing it to a kernel worker; but when the kernel
// throttles writers or waits for its journal, it would hold up everything on the shard. After one
// such stall, writes go to workers for a while, longer each time. Pure.
#pragma once

#include <algorithm>

#include "common/runtime/clock.h"

namespace vjbod::backstore {

class StallGuard {
 public:
  static constexpr Duration stall = std::chrono::milliseconds(5);
  static constexpr Duration first_pause = std::chrono::seconds(1);
  static constexpr Duration longest_pause = std::chrono::seconds(60);

  bool allows(TimePoint now) const { return now >= closed_until_; }

  // A write on the shard took this long.
  void note(Duration took, TimePoint now) {
    if (took < stall) [[likely]]
      return;
    // A stall soon after the last pause means that the trouble is still there.
    bool again = now < closed_until_ + longest_pause;
    pause_ = again ? std::min(2 * pause_, longest_pause) : first_pause;
    closed_until_ = now + pause_;
  }

 private:
  TimePoint closed_until_{};
  Duration pause_ = first_pause / 2;
};

}  // namespace vjbod::backstore
