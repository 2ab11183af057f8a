// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/timer_queue.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "common/runtime/manual_reactor.h"

namespace vjbod {
namespace {

using namespace std::chrono_literals;

struct Timers : testing::Test {
  std::unique_ptr<Timer> timer(int name) {
    return std::make_unique<Timer>(reactor, [this, name] { expired.push_back(name); });
  }

  ManualReactor reactor;
  std::vector<int> expired;
};

TEST_F(Timers, ExpireInOrderOfTheirDeadlines) {
  auto one = timer(1), two = timer(2), three = timer(3);
  three->arm_after(3s);
  one->arm_after(1s);
  two->arm_after(2s);
  reactor.advance(2s);
  EXPECT_EQ(expired, (std::vector{1, 2}));
  EXPECT_TRUE(three->armed());
}

TEST_F(Timers, EqualDeadlinesExpireInTheOrderOfArming) {
  std::vector<std::unique_ptr<Timer>> all;
  std::vector<int> expected;
  for (int i = 0; i < 50; ++i) {
    all.push_back(timer(i));
    all.back()->arm_after(1s);
    expected.push_back(i);
  }
  reactor.advance(1s);
  EXPECT_EQ(expired, expected);
}

TEST_F(Timers, ArmingAgainMovesTheDeadline) {
  auto one = timer(1);
  one->arm_after(1s);
  one->arm_after(5s);
  reactor.advance(4s);
  EXPECT_TRUE(expired.empty());
  reactor.advance(1s);
  EXPECT_EQ(expired, std::vector{1});
}

TEST_F(Timers, CancelledOrDestroyedTimersDoNotExpire) {
  auto one = timer(1), two = timer(2);
  one->arm_after(1s);
  two->arm_after(1s);
  one->cancel();
  one->cancel();
  two.reset();
  reactor.advance(2s);
  EXPECT_TRUE(expired.empty());
  EXPECT_FALSE(reactor.timers().next_deadline());
}

TEST_F(Timers, ACallbackMayDestroyItsTimer) {
  std::unique_ptr<Timer> one;
  one = std::make_unique<Timer>(reactor, [&] { one.reset(); });
  one->arm_after(1s);
  reactor.advance(1s);
  EXPECT_FALSE(one);
}

TEST_F(Timers, ACallbackMayArmItsTimerAgain) {
  int count = 0;
  Timer ticking(reactor, [&] {
    if (++count < 3) ticking.arm_after(1s);
  });
  ticking.arm_after(1s);
  reactor.advance(10s);
  EXPECT_EQ(count, 3);
}

TEST_F(Timers, WhatACallbackArmsForNowWaitsForTheNextRound) {
  Timer second(reactor, [&] { expired.push_back(2); });
  Timer first(reactor, [&] { second.arm_at(reactor.now()); });
  first.arm_at(reactor.now());
  EXPECT_EQ(reactor.timers().run_due(reactor.now()), 1U);
  EXPECT_TRUE(expired.empty());
  EXPECT_EQ(reactor.timers().run_due(reactor.now()), 1U);
  EXPECT_EQ(expired, std::vector{2});
}

TEST_F(Timers, RandomArmingAndCancellingKeepsTheOrder) {
  Random random(3);
  std::vector<TimePoint> fired;
  std::vector<std::unique_ptr<Timer>> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(std::make_unique<Timer>(reactor, [&] { fired.push_back(reactor.now()); }));
  }
  for (int step = 0; step < 2000; ++step) {
    Timer& timer = *all[random.below(all.size())];
    if (random.chance(1, 3)) {
      timer.cancel();
    } else {
      timer.arm_after(std::chrono::milliseconds(random.below(1000)));
    }
  }
  const auto armed = std::count_if(all.begin(), all.end(), [](auto& t) { return t->armed(); });
  reactor.advance(1s);
  EXPECT_EQ(fired.size(), static_cast<size_t>(armed));
  EXPECT_TRUE(std::is_sorted(fired.begin(), fired.end()));
}

}  // namespace
}  // namespace vjbod
