// SPDX-License-Identifier: Apache-2.0
#include "initiator/session/supervisor_machine.h"

#include <gtest/gtest.h>

namespace vjbod::initiator {
namespace {

using namespace std::chrono_literals;
using Event = SupervisorEvent;
using State = SupervisorState;
using Do = SupervisorAction::Kind;

class SupervisorMachineTest : public testing::Test {
 protected:
  std::vector<SupervisorAction> give(Event event, CloseKind close = CloseKind::lost,
                                     std::string redirect = {}) {
    return machine.handle({event, now, close, std::move(redirect), false});
  }
  void go_online() {
    give(Event::start);
    give(Event::connected);
    give(Event::logged_in);
    give(Event::probe_passed);
    ASSERT_EQ(machine.state(), State::online);
  }
  static PathCandidate path(const std::string& address) {
    return {transport::Kind::iscsi, {address, 3260, {}, {}}};
  }

  TimePoint now{1000s};
  SupervisorMachine machine{{path("10.0.0.2"), path("10.0.0.3")}, {}, Random(1), true};
  SupervisorMachine fresh{{path("10.0.0.2"), path("10.0.0.3")}, {}, Random(1), false};
};

TEST_F(SupervisorMachineTest, ConnectsLogsInProbesAndIsOnline) {
  auto connect = give(Event::start);
  ASSERT_EQ(connect.size(), 1u);
  EXPECT_EQ(connect[0].kind, Do::connect);
  EXPECT_EQ(connect[0].path.endpoint.address, "10.0.0.2");
  EXPECT_EQ(give(Event::connected)[0].kind, Do::log_in);
  EXPECT_EQ(give(Event::logged_in)[0].kind, Do::probe);
  EXPECT_EQ(give(Event::probe_passed)[0].kind, Do::go_online);
  EXPECT_EQ(machine.state(), State::online);
}

TEST_F(SupervisorMachineTest, TriesEveryPathBeforeItWaits) {
  give(Event::start);

  EXPECT_EQ(give(Event::connect_failed)[0].path.endpoint.address, "10.0.0.3");
  EXPECT_EQ(give(Event::connect_failed)[0].kind, Do::sleep);
  EXPECT_EQ(give(Event::time_over)[0].path.endpoint.address, "10.0.0.2");
}

TEST_F(SupervisorMachineTest, WaitsLongerAfterEachRoundUpToTheLimit) {
  give(Event::start);
  Duration longest{};
  std::vector<Duration> waits;
  for (int round = 0; round < 12; ++round) {
    give(Event::connect_failed);
    const auto actions = give(Event::connect_failed);
    ASSERT_EQ(actions[0].kind, Do::sleep);
    waits.push_back(actions[0].delay);
    longest = std::max(longest, actions[0].delay);
    give(Event::time_over);
  }
  EXPECT_LE(waits[0], 100ms);
  EXPECT_GE(waits[1], 750ms);
  EXPECT_LE(waits[1], 1s);
  EXPECT_GE(waits[11], 22s);
  EXPECT_LE(longest, 30s);
}

TEST_F(SupervisorMachineTest, RetriesQuicklyAfterTheLossOfAStableSession) {
  go_online();
  now += 10s;

  const auto actions = give(Event::session_closed);

  ASSERT_EQ(actions[0].kind, Do::sleep);
  EXPECT_LE(actions[0].delay, 100ms);
}

TEST_F(SupervisorMachineTest, DoesNotStormATargetThatDropsEverySession) {
  go_online();
  Duration last{};
  for (int i = 0; i < 8; ++i) {
    now += 10ms;
    last = give(Event::session_closed)[0].delay;
    give(Event::time_over);
    give(Event::connected);
    give(Event::logged_in);
    give(Event::probe_passed);
  }
  EXPECT_GE(last, 20s);
}

TEST_F(SupervisorMachineTest, StaysQuickWhileEverySessionGetsWorkDone) {
  go_online();
  for (int i = 0; i < 100; ++i) {
    now += 10ms;
    const auto actions =
        machine.handle({Event::session_closed, now, CloseKind::lost, {}, /*was_useful=*/true});
    ASSERT_LE(actions[0].delay, 100ms);
    give(Event::time_over);
    give(Event::connected);
    give(Event::logged_in);
    give(Event::probe_passed);
  }
}

TEST_F(SupervisorMachineTest, GivesUpAfterThreeMisfitsUntilStarted) {
  give(Event::start);
  for (uint32_t i = 0; i < misfits_max; ++i) {
    ASSERT_EQ(machine.state(), State::connecting);
    give(Event::connected);
    give(Event::session_closed, CloseKind::misfit);
    give(Event::time_over);
  }
  ASSERT_EQ(machine.state(), State::failed);
  EXPECT_TRUE(give(Event::reconnect).empty());

  EXPECT_EQ(give(Event::start)[0].kind, Do::connect);
}

TEST_F(SupervisorMachineTest, ALoginThatWorksForgetsEarlierRefusals) {
  for (int i = 0; i < 2; ++i) {
    give(i == 0 ? Event::start : Event::time_over);
    give(Event::connected);
    give(Event::session_closed, CloseKind::misfit);
  }
  give(Event::time_over);
  give(Event::connected);

  give(Event::logged_in);

  EXPECT_EQ(machine.misfits(), 0u);
}

TEST_F(SupervisorMachineTest, ANewDiskThatIsRefusedFailsAtOnce) {
  for (CloseKind close : {CloseKind::misfit, CloseKind::refused}) {
    SupervisorMachine made = fresh;
    made.handle({Event::start, now});
    made.handle({Event::connected, now});

    EXPECT_TRUE(made.handle({Event::session_closed, now, close}).empty());

    EXPECT_EQ(made.state(), State::failed);
  }
}

TEST_F(SupervisorMachineTest, ANewDiskThatIsNoneFails) {
  fresh.handle({Event::start, now});
  fresh.handle({Event::connected, now});
  fresh.handle({Event::logged_in, now});

  fresh.handle({Event::no_such_disk, now});
  EXPECT_EQ(fresh.goal(), State::failed);
}

TEST_F(SupervisorMachineTest, ANewDiskWhoseTargetIsNotThereIsTriedOn) {
  fresh.handle({Event::start, now});
  fresh.handle({Event::connect_failed, now});

  EXPECT_EQ(fresh.handle({Event::connect_failed, now})[0].kind, Do::sleep);
}

TEST_F(SupervisorMachineTest, ADiskThatWasOnlineIsTriedOnWhenItIsRefused) {
  fresh.handle({Event::start, now});
  fresh.handle({Event::connected, now});
  fresh.handle({Event::logged_in, now});
  fresh.handle({Event::probe_passed, now});
  fresh.handle({Event::session_closed, now});
  for (int i = 0; i < 20; ++i) {
    fresh.handle({Event::time_over, now});
    while (fresh.state() == State::connecting) {
      fresh.handle({Event::connected, now});
      fresh.handle({Event::session_closed, now, CloseKind::refused});
    }
    ASSERT_EQ(fresh.state(), State::backing_off);
  }
}

TEST_F(SupervisorMachineTest, OffersMd5AloneOnceToATargetThatRefusesTheList) {
  give(Event::start);
  EXPECT_FALSE(give(Event::connected)[0].md5_only);

  const auto again = give(Event::session_closed, CloseKind::at_chap);

  ASSERT_EQ(again[0].kind, Do::connect);
  EXPECT_EQ(again[0].path.endpoint.address, "10.0.0.2") << "the same path";
  EXPECT_TRUE(give(Event::connected)[0].md5_only);
  EXPECT_EQ(give(Event::session_closed, CloseKind::at_chap)[0].kind, Do::sleep);
  EXPECT_EQ(machine.misfits(), 1u);
}

TEST_F(SupervisorMachineTest, KeepsTheAlgorithmsThatWorkedUntilToldToForget) {
  give(Event::start);
  give(Event::connected);
  give(Event::session_closed, CloseKind::at_chap);
  give(Event::connected);
  give(Event::logged_in);
  give(Event::probe_passed);
  give(Event::session_closed);
  give(Event::time_over);
  EXPECT_TRUE(give(Event::connected)[0].md5_only);

  machine.forget_algorithms();
  give(Event::session_closed);
  give(Event::connect_failed);
  give(Event::time_over);
  EXPECT_FALSE(give(Event::connected)[0].md5_only);
}

TEST_F(SupervisorMachineTest, ANewDiskWhoseSecretIsWrongFailsAfterBothKinds) {
  fresh.handle({Event::start, now});
  fresh.handle({Event::connected, now});
  fresh.handle({Event::session_closed, now, CloseKind::at_chap});
  fresh.handle({Event::connected, now});

  fresh.handle({Event::session_closed, now, CloseKind::at_chap});

  EXPECT_EQ(fresh.state(), State::failed);
}

TEST_F(SupervisorMachineTest, FollowsARedirection) {
  give(Event::start);
  give(Event::connected);

  const auto actions = give(Event::session_closed, CloseKind::redirect, "10.0.0.9:3261");

  ASSERT_EQ(actions[0].kind, Do::connect);
  EXPECT_EQ(actions[0].path.endpoint.address, "10.0.0.9");
}

TEST_F(SupervisorMachineTest, AnotherLunIsStaleUntilAPersonActs) {
  give(Event::start);
  give(Event::connected);
  give(Event::logged_in);

  EXPECT_EQ(give(Event::identity_changed)[0].kind, Do::close_session);
  EXPECT_EQ(machine.goal(), State::stale);
  give(Event::session_closed);

  EXPECT_EQ(machine.state(), State::stale);
  EXPECT_TRUE(give(Event::reconnect).empty());
  EXPECT_TRUE(give(Event::time_over).empty());
  EXPECT_EQ(give(Event::start)[0].kind, Do::connect);
}

TEST_F(SupervisorMachineTest, AReconnectCannotTalkAStaleDiskOutOfItWhileDraining) {
  give(Event::start);
  give(Event::connected);
  give(Event::logged_in);
  give(Event::identity_changed);

  give(Event::reconnect);
  give(Event::session_closed);

  EXPECT_EQ(machine.state(), State::stale);
}

TEST_F(SupervisorMachineTest, LostWritesAreFailed) {
  give(Event::start);
  give(Event::connected);
  give(Event::logged_in);
  give(Event::writes_lost);

  give(Event::session_closed);

  EXPECT_EQ(machine.state(), State::failed);
}

TEST_F(SupervisorMachineTest, ReconnectClosesTheOldSessionBeforeItConnects) {
  go_online();

  const auto closing = give(Event::reconnect);
  ASSERT_EQ(closing.size(), 1u);
  EXPECT_EQ(closing[0].kind, Do::close_session);
  const auto connecting = give(Event::session_closed);

  ASSERT_EQ(connecting.size(), 1u);
  EXPECT_EQ(connecting[0].kind, Do::connect);
}

TEST_F(SupervisorMachineTest, StopWorksFromEveryState) {
  give(Event::start);
  EXPECT_EQ(give(Event::stop)[0].kind, Do::abandon_connect);
  EXPECT_EQ(machine.state(), State::stopped);

  give(Event::start);
  give(Event::connected);
  EXPECT_EQ(give(Event::stop)[0].kind, Do::close_session);
  give(Event::session_closed);
  EXPECT_EQ(machine.state(), State::stopped);

  go_online();
  EXPECT_EQ(give(Event::stop)[0].kind, Do::close_session);
  give(Event::session_closed);
  EXPECT_EQ(machine.state(), State::stopped);

  give(Event::start);
  give(Event::connect_failed);
  give(Event::connect_failed);
  EXPECT_EQ(give(Event::stop)[0].kind, Do::cancel_sleep);
  EXPECT_EQ(machine.state(), State::stopped);
}

TEST_F(SupervisorMachineTest, ProbesAgainWithoutANewSessionWhenTheLunHasChanged) {
  go_online();

  EXPECT_EQ(give(Event::probe_wanted)[0].kind, Do::probe);
  EXPECT_TRUE(machine.was_online());

  EXPECT_EQ(give(Event::probe_passed)[0].kind, Do::go_online);
}

TEST_F(SupervisorMachineTest, WaitsWithoutAnyPath) {
  SupervisorMachine without({}, {}, Random(1), true);

  const auto actions = without.handle({Event::start, now, CloseKind::lost, {}, false});

  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].kind, Do::sleep);
}

}  // namespace
}  // namespace vjbod::initiator
