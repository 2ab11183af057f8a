// SPDX-License-Identifier: Apache-2.0
#include "target/backstore/stall_guard.h"

#include <gtest/gtest.h>

namespace vjbod::backstore {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint start{1000s};

TEST(StallGuard, AllowsWritesThatAreQuick) {
  StallGuard guard;
  EXPECT_TRUE(guard.allows(start));
  guard.note(StallGuard::stall - 1ns, start);
  EXPECT_TRUE(guard.allows(start));
}

TEST(StallGuard, KeepsWritesOffTheShardAfterAStall) {
  StallGuard guard;
  guard.note(StallGuard::stall, start);
  EXPECT_FALSE(guard.allows(start + StallGuard::first_pause - 1ns));
  EXPECT_TRUE(guard.allows(start + StallGuard::first_pause));
}

TEST(StallGuard, WaitsLongerAfterEachStallUpToALimit) {
  StallGuard guard;
  TimePoint now = start;
  for (Duration pause : {1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s}) {
    guard.note(200ms, now);
    EXPECT_FALSE(guard.allows(now + pause - 1ns));
    now += pause;
    EXPECT_TRUE(guard.allows(now));
  }
}

TEST(StallGuard, ForgetsAStallOfLongAgo) {
  StallGuard guard;
  guard.note(200ms, start);
  guard.note(200ms, start + 1s);
  TimePoint later = start + 1h;
  guard.note(200ms, later);
  EXPECT_TRUE(guard.allows(later + StallGuard::first_pause));
}

}  // namespace
}  // namespace vjbod::backstore
