// SPDX-License-Identifier: Apache-2.0
// The supervisor machine's choice between iSER and iSCSI, on a clock of the test.
#include <gtest/gtest.h>

#include "initiator/session/supervisor_machine.h"

namespace vjbod::initiator {
namespace {

using namespace std::chrono_literals;
using Event = SupervisorEvent;
using State = SupervisorState;
using Do = SupervisorAction::Kind;
using transport::Kind;

class RdmaFallbackTest : public testing::Test {
 protected:
  static PathCandidate path(Kind kind, const std::string& address) {
    return {kind, {address, 3260, "10.0.0.1", "eth0"}};
  }
  // What each attempt comes to, until something else than connecting and logging in is due.
  enum class Rdma { works, refused, silent };

  SupervisorAction give(Event event, bool useful = false) {
    auto actions = machine.handle({event, now, CloseKind::lost, {}, useful});
    return actions.empty() ? SupervisorAction{Do::cancel_sleep} : actions.back();
  }
  // Follows the machine until it is online or sleeps.
  void go(SupervisorAction action, Rdma rdma, bool tcp_works = true) {
    for (;;) {
      switch (action.kind) {
        case Do::connect: {
          tried.push_back(action.path.kind);
          const bool by_rdma = action.path.kind == Kind::iser;
          if (by_rdma && rdma == Rdma::silent) now += action.limit.value_or(3s);
          if (!by_rdma && !tcp_works) now += 3s;
          const bool works = by_rdma ? rdma == Rdma::works : tcp_works;
          action = give(works ? Event::connected : Event::connect_failed);
          break;
        }
        case Do::log_in: action = give(Event::logged_in); break;
        case Do::probe: action = give(Event::probe_passed); break;
        case Do::go_online: online_by = tried.back(); return;
        default: online_by.reset(); return;
      }
    }
  }
  void start(Rdma rdma) { go(give(Event::start), rdma); }
  // The session ends by itself, and the wait after it as well.
  void lose(Rdma rdma, bool useful, bool tcp_works = true) {
    tried.clear();
    give(Event::session_closed, useful);
    now += 100ms;
    go(give(Event::time_over), rdma, tcp_works);
  }

  TimePoint now{1000s};
  SupervisorMachine machine{
      {path(Kind::iser, "10.0.0.2"), path(Kind::iscsi, "10.0.0.2")}, {}, Random(1), false};
  std::vector<Kind> tried;
  std::optional<Kind> online_by;
};

TEST_F(RdmaFallbackTest, IserIsTakenWhenItWorks) {
  start(Rdma::works);
  EXPECT_EQ(online_by, Kind::iser);
  EXPECT_EQ(tried, std::vector{Kind::iser});
}

TEST_F(RdmaFallbackTest, ASilentRdmaSideCostsLessThanFiveSeconds) {
  start(Rdma::silent);
  EXPECT_EQ(online_by, Kind::iscsi);
  EXPECT_LE(now, TimePoint{1000s} + 4s);
}

TEST_F(RdmaFallbackTest, SeveralSilentPairsShareThatTime) {
  machine.set_paths({path(Kind::iser, "10.0.0.2"), path(Kind::iser, "10.0.1.2"),
                     path(Kind::iser, "10.0.2.2"), path(Kind::iscsi, "10.0.0.2")});
  start(Rdma::silent);
  EXPECT_EQ(online_by, Kind::iscsi);
  EXPECT_EQ(tried.size(), 4u);
  EXPECT_LE(now, TimePoint{1000s} + 4s);
}

TEST_F(RdmaFallbackTest, ALoginOverRdmaThatIsNotAnsweredIsGivenUpInTheSameTime) {
  const auto connect = give(Event::start);
  now += 3500ms;
  const auto log_in = give(Event::connected);
  ASSERT_EQ(log_in.kind, Do::log_in);
  ASSERT_TRUE(log_in.limit);
  EXPECT_LE(3500ms + *log_in.limit, 5s);
  now += *log_in.limit;
  tried.push_back(connect.path.kind);
  go(give(Event::session_closed), Rdma::works);
  EXPECT_EQ(online_by, Kind::iscsi);
}

TEST_F(RdmaFallbackTest, AfterALossALoginMayTakeItsTimeTheTargetMayHaveToDrain) {
  start(Rdma::works);
  give(Event::session_closed, true);
  give(Event::time_over);
  EXPECT_FALSE(give(Event::connected).limit);
}

TEST_F(RdmaFallbackTest, WhereIserIsRequiredNothingIsCutShort) {
  machine.set_paths({path(Kind::iser, "10.0.0.2")});
  EXPECT_FALSE(give(Event::start).limit);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(give(Event::connect_failed).kind, Do::sleep);
    ASSERT_EQ(give(Event::time_over).kind, Do::connect);
  }
}

TEST_F(RdmaFallbackTest, AfterALossItStartsAtIserAgain) {
  start(Rdma::refused);
  ASSERT_EQ(online_by, Kind::iscsi);
  now += 10s;
  lose(Rdma::works, true);
  EXPECT_EQ(online_by, Kind::iser);
  EXPECT_EQ(tried, std::vector{Kind::iser});
}

TEST_F(RdmaFallbackTest, RepeatedFailuresAreRememberedAndForgottenInTime) {
  start(Rdma::silent);
  lose(Rdma::silent, true);
  ASSERT_EQ(online_by, Kind::iscsi);
  EXPECT_EQ(tried.front(), Kind::iser);
  EXPECT_EQ(machine.rdma_avoided_until(now), now + 60s);

  lose(Rdma::works, true);
  EXPECT_EQ(tried, std::vector{Kind::iscsi});

  now += 61s;
  lose(Rdma::works, true);
  EXPECT_EQ(tried, std::vector{Kind::iser});
  EXPECT_FALSE(machine.rdma_avoided_until(now));
}

TEST_F(RdmaFallbackTest, APersonsWordTriesRdmaAgainAtOnce) {
  start(Rdma::silent);
  lose(Rdma::silent, true);
  machine.forget_rdma_failures();
  lose(Rdma::works, true);
  EXPECT_EQ(online_by, Kind::iser);
}

TEST_F(RdmaFallbackTest, ABoxThatWasAwayTeachesNothingAboutRdma) {
  start(Rdma::works);
  lose(Rdma::silent, true, /*tcp_works=*/false);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(machine.state(), State::backing_off);
    now += 30s;
    go(give(Event::time_over), Rdma::silent, false);
  }
  tried.clear();
  go(give(Event::time_over), Rdma::works);
  EXPECT_EQ(tried, std::vector{Kind::iser});
}

TEST_F(RdmaFallbackTest, ABoxThatComesBackBetweenTheTwoIsLookedAtOnceMore) {
  start(Rdma::works);
  give(Event::session_closed, true);
  ASSERT_EQ(give(Event::time_over).path.kind, Kind::iser);
  ASSERT_EQ(give(Event::connect_failed).path.kind, Kind::iscsi);
  // It answers now: so RDMA may, too.
  const auto again = give(Event::connected);
  ASSERT_EQ(again.kind, Do::connect);
  EXPECT_EQ(again.path.kind, Kind::iser);
  // But it does not: this time iSCSI is taken.
  ASSERT_EQ(give(Event::connect_failed).path.kind, Kind::iscsi);
  EXPECT_EQ(give(Event::connected).kind, Do::log_in);
}

TEST_F(RdmaFallbackTest, RdmaThatConnectsAndDoesNoWorkDoesNotKeepTheDiskFromIscsi) {
  start(Rdma::works);
  for (int i = 0; i < 2 && online_by == Kind::iser; ++i) {
    now += 10s;
    lose(Rdma::works, /*useful=*/false);
  }
  EXPECT_EQ(online_by, Kind::iscsi);
}

TEST_F(RdmaFallbackTest, RdmaThatGetsWorkDoneIsNeverLeftOutForItsLosses) {
  start(Rdma::works);
  for (int i = 0; i < 50; ++i) {
    now += 10ms;
    lose(Rdma::works, /*useful=*/true);
    ASSERT_EQ(online_by, Kind::iser);
  }
}

}  // namespace
}  // namespace vjbod::initiator
