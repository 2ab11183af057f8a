// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/manual_reactor.h"

#include <vector>

#include <gtest/gtest.h>

namespace vjbod {
namespace {

using namespace std::chrono_literals;

struct Counting final : Deferred {
  void run_deferred() override {
    ++runs;
    if (then) then();
  }
  int runs = 0;
  std::function<void()> then;
};

TEST(ManualReactor, RunsPostedWorkInOrderAndNotInsideThePost) {
  ManualReactor reactor;
  std::vector<int> order;
  reactor.post([&] {
    order.push_back(1);
    reactor.post([&] { order.push_back(3); });
    order.push_back(2);
  });
  EXPECT_TRUE(order.empty());
  reactor.run_until_idle();
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST(ManualReactor, RunsDeferredWorkOnceAfterTheEventsOfATurn) {
  ManualReactor reactor;
  Counting work;
  int runs_seen_by_events = 0;
  for (int i = 0; i < 3; ++i) {
    reactor.post([&] {
      reactor.defer(work);
      runs_seen_by_events += work.runs;
    });
  }
  reactor.run_until_idle();
  EXPECT_EQ(work.runs, 1);
  EXPECT_EQ(runs_seen_by_events, 0);
}

TEST(ManualReactor, DestroyedDeferredWorkDoesNotRun) {
  ManualReactor reactor;
  auto work = std::make_unique<Counting>();
  Counting first;
  first.then = [&] { work.reset(); };
  reactor.defer(first);
  reactor.defer(*work);
  reactor.run_until_idle();
  EXPECT_EQ(first.runs, 1);
}

TEST(ManualReactor, DeferredWorkMayDeferItselfAgain) {
  ManualReactor reactor;
  Counting work;
  work.then = [&] {
    if (work.runs < 3) reactor.defer(work);
  };
  reactor.defer(work);
  reactor.run_until_idle();
  EXPECT_EQ(work.runs, 3);
}

TEST(ManualReactor, TimeMovesOnlyWhenTold) {
  ManualReactor reactor;
  const TimePoint start = reactor.now();
  TimePoint seen{};
  Timer timer(reactor, [&] { seen = reactor.now(); });
  timer.arm_after(3s);
  reactor.run_until_idle();
  EXPECT_EQ(reactor.now(), start);
  reactor.advance(10s);
  EXPECT_EQ(seen, start + 3s) << "each timer runs at its own moment";
  EXPECT_EQ(reactor.now(), start + 10s);
}

TEST(ManualReactor, GoesFromTimerToTimer) {
  ManualReactor reactor;
  const TimePoint start = reactor.now();
  Timer timer(reactor, [] {});
  timer.arm_after(7s);
  EXPECT_TRUE(reactor.advance_to_next_timer());
  EXPECT_EQ(reactor.now(), start + 7s);
  EXPECT_FALSE(reactor.advance_to_next_timer());
}

TEST(ManualReactor, RunsUntilDoneOrUntilTheLimitHasPassed) {
  ManualReactor reactor;
  const TimePoint start = reactor.now();
  int ticks = 0;
  Timer timer(reactor, [&] {
    ++ticks;
    timer.arm_after(1s);
  });
  timer.arm_after(1s);
  EXPECT_TRUE(reactor.run_until([&] { return ticks == 3; }, 10s));
  EXPECT_EQ(reactor.now(), start + 3s);
  EXPECT_FALSE(reactor.run_until([] { return false; }, 2500ms));
  EXPECT_EQ(ticks, 5);
  EXPECT_EQ(reactor.now(), start + 5500ms);
}

TEST(ManualReactorDeath, CannotWatchADescriptor) {
  ManualReactor reactor;
  EXPECT_DEATH(reactor.watch_readable(0, [] {}), "cannot watch");
}

}  // namespace
}  // namespace vjbod
