// SPDX-License-Identifier: Apache-2.0
#include "initiator/session/rdma_memory.h"

#include <gtest/gtest.h>

namespace vjbod::initiator {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint start{1000s};
const transport::Endpoint one{"10.0.0.2", 3260, "10.0.0.1", "eth0"};
const transport::Endpoint other{"10.0.1.2", 3260, "10.0.1.1", "eth1"};

TEST(RdmaMemory, OneFailureMeansNothing) {
  RdmaMemory memory;
  memory.failed(one, start);
  EXPECT_FALSE(memory.avoided_until(one, start));
}

TEST(RdmaMemory, RepeatedFailuresAreAvoidedForAMinuteGrowingToHalfAnHour) {
  RdmaMemory memory;
  memory.failed(one, start);
  Duration expected = 60s;
  for (int i = 0; i < 40; ++i) {
    memory.failed(one, start);
    ASSERT_EQ(memory.avoided_until(one, start), start + expected);
    EXPECT_TRUE(memory.avoided_until(one, start + expected - 1ns));
    EXPECT_FALSE(memory.avoided_until(one, start + expected));
    expected = std::min<Duration>(expected * 2, 30min);
  }
  EXPECT_FALSE(memory.avoided_until(other, start));
}

TEST(RdmaMemory, AWayThatWorkedOrAPersonsWordClearsIt) {
  RdmaMemory memory;
  for (int i = 0; i < 3; ++i) memory.failed(one, start), memory.failed(other, start);
  memory.worked(one);
  EXPECT_FALSE(memory.avoided_until(one, start));
  EXPECT_TRUE(memory.avoided_until(other, start));
  memory.failed(one, start);
  EXPECT_FALSE(memory.avoided_until(one, start));
  memory.forget();
  EXPECT_FALSE(memory.avoided_until(other, start));
}

}  // namespace
}  // namespace vjbod::initiator
