// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/asio_reactor.h"

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/runtime/shard.h"

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

// A descriptor that is readable as long as its count is not read.
class EventFd {
 public:
  EventFd() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~EventFd() { close(fd_); }
  int get() const { return fd_; }
  void signal() {
    const uint64_t one = 1;
    EXPECT_EQ(write(fd_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
  bool drain() {
    uint64_t count = 0;
    return read(fd_, &count, sizeof count) == static_cast<ssize_t>(sizeof count);
  }

 private:
  int fd_;
};

// The test's own thread runs the reactor; what is posted before run() is its first turn.
struct AsioReactorTest : testing::Test {
  AsioReactor reactor{1};
};

TEST_F(AsioReactorTest, RunsPostedWorkInOrderThenStops) {
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) reactor.post([&, i] { order.push_back(i); });
  reactor.stop();
  reactor.post([&] { order.push_back(3); });
  reactor.run();
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3})) << "what was posted before run() returned has run";
}

TEST_F(AsioReactorTest, WorkPostedByOtherThreadsRunsOnTheOwner) {
  std::atomic<int> on_owner = 0;
  std::vector<std::thread> others;
  for (int i = 0; i < 4; ++i) {
    others.emplace_back([&] {
      for (int j = 0; j < 100; ++j) {
        reactor.post([&] {
          on_owner += reactor.on_owner_thread() ? 1 : 0;
          if (on_owner == 400) reactor.stop();
        });
      }
    });
  }
  reactor.run();
  for (auto& thread : others) thread.join();
  EXPECT_EQ(on_owner, 400);
}

TEST_F(AsioReactorTest, DeferredWorkRunsOnceAfterAllEventsOfTheTurn) {
  Counting work;
  work.then = [&] { reactor.stop(); };
  int runs_seen_by_events = 0;
  for (int i = 0; i < 3; ++i) {
    reactor.post([&] {
      reactor.defer(work);
      runs_seen_by_events += work.runs;
    });
  }
  reactor.run();
  EXPECT_EQ(work.runs, 1);
  EXPECT_EQ(runs_seen_by_events, 0);
}

TEST_F(AsioReactorTest, WorkThatDefersItselfDoesNotStarveEvents) {
  Counting work;
  bool event_came = false;
  work.then = [&] {
    if (work.runs == 1) reactor.post([&] { event_came = true; });
    if (!event_came) {
      reactor.defer(work);
    } else {
      reactor.stop();
    }
  };
  reactor.defer(work);
  reactor.run();
  EXPECT_TRUE(event_came);
}

TEST_F(AsioReactorTest, TimersExpireInOrderAndNeverEarly) {
  std::vector<int> order;
  const TimePoint start = reactor.now();
  TimePoint end{};
  Timer late(reactor, [&] {
    order.push_back(2);
    end = reactor.now();
    reactor.stop();
  });
  Timer early(reactor, [&] { order.push_back(1); });
  Timer never(reactor, [&] { order.push_back(3); });
  late.arm_at(start + 20ms);
  never.arm_at(start + 1ms);
  early.arm_at(start + 10ms);
  never.cancel();
  reactor.run();
  EXPECT_EQ(order, (std::vector{1, 2}));
  EXPECT_GE(end, start + 20ms);
}

TEST_F(AsioReactorTest, AnEarlierTimerArmedLaterComesFirst) {
  std::vector<int> order;
  Timer late(reactor, [&] {
    order.push_back(2);
    reactor.stop();
  });
  Timer early(reactor, [&] { order.push_back(1); });
  late.arm_after(30ms);
  reactor.post([&] { reactor.post([&] { early.arm_after(1ms); }); });
  reactor.run();
  EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST_F(AsioReactorTest, TimeInAnEventAfterALongWaitIsTheTimeOfTheEvent) {
  const int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  itimerspec in_20_ms{};
  in_20_ms.it_value.tv_nsec = 20'000'000;
  Counting arm;
  TimePoint waiting_since{}, seen{};
  arm.then = [&] {
    waiting_since = reactor.now();
    timerfd_settime(fd, 0, &in_20_ms, nullptr);
  };
  reactor.defer(arm);
  auto watch = reactor.watch_readable(fd, [&] {
    seen = reactor.now();
    uint64_t count = 0;
    EXPECT_EQ(read(fd, &count, sizeof count), static_cast<ssize_t>(sizeof count));
    reactor.stop();
  });
  reactor.run();
  watch.reset();
  close(fd);
  EXPECT_GE(seen, waiting_since + 20ms);
}

TEST_F(AsioReactorTest, ADescriptorIsWatchedAgainAndAgain) {
  EventFd event;
  int seen = 0;
  auto watch = reactor.watch_readable(event.get(), [&] {
    EXPECT_TRUE(event.drain());
    if (++seen == 3) {
      reactor.stop();
    } else {
      event.signal();
    }
  });
  event.signal();
  reactor.run();
  EXPECT_EQ(seen, 3);
}

TEST_F(AsioReactorTest, ADestroyedWatchIsSilentAndLeavesTheDescriptorOpen) {
  EventFd event;
  std::unique_ptr<FdWatch> watch;
  int seen = 0;
  watch = reactor.watch_readable(event.get(), [&] {
    ++seen;
    watch.reset();  // from inside its own call
    reactor.post([&] { reactor.stop(); });
  });
  event.signal();
  reactor.run();
  EXPECT_EQ(seen, 1);
  EXPECT_TRUE(event.drain()) << "still open, and nobody read it";
}

TEST_F(AsioReactorTest, ADescriptorCanBeWatchedASecondTime) {
  EventFd event;
  reactor.watch_readable(event.get(), [] { ADD_FAILURE() << "destroyed at once"; }).reset();
  int seen = 0;
  auto watch = reactor.watch_readable(event.get(), [&] {
    EXPECT_TRUE(event.drain());
    ++seen;
    reactor.stop();
  });
  event.signal();
  reactor.run();
  EXPECT_EQ(seen, 1);
}

TEST_F(AsioReactorTest, AnEventThatIsAlwaysReadyHoldsUpNothingElse) {
  EventFd never_drained;
  Counting work;
  auto watch = reactor.watch_readable(never_drained.get(), [&] { reactor.defer(work); });
  Timer timer(reactor, [&] { reactor.stop(); });
  never_drained.signal();
  timer.arm_after(1ms);
  reactor.run();
  EXPECT_GT(work.runs, 0);
}

TEST(Shard, RunsWhatIsPostedOnItsOwnThreadUntilDestroyed) {
  std::thread::id ran_on;
  bool owner = false;
  {
    Shard shard("test", -1, 1, 1 << 20);
    shard.reactor().post([&] {
      ran_on = std::this_thread::get_id();
      owner = shard.reactor().on_owner_thread();
    });
  }
  EXPECT_NE(ran_on, std::this_thread::get_id());
  EXPECT_NE(ran_on, std::thread::id());
  EXPECT_TRUE(owner);
}

}  // namespace
}  // namespace vjbod
