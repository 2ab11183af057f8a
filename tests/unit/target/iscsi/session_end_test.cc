// SPDX-License-Identifier: Apache-2.0
// How sessions end, and what waits for it: the fence between old and new nexuses, reinstatement,
// and calls that end sessions which are on their way out already.
#include <gtest/gtest.h>

#include "tests/unit/target/iscsi/server_fixture.h"

namespace vjbod::target {
namespace {

using test::Peer;

class SessionEndTest : public test::ServerFixture {
 protected:
  // The old write is carried out before the new session can send its own.
  void expect_the_new_write_to_stay(Peer& next) {
    EXPECT_FALSE(next.logged_in()) << "let in while a write of an ended session is at the disk";
    store_->release();
    reactor_.run_until_idle();
    ASSERT_TRUE(next.logged_in());
    next.look();
    next.write(0, 'n');
    reactor_.run_until_idle();
    EXPECT_EQ(on_disk(0), 'n');
  }
};

TEST_F(SessionEndTest, ALoginWithAnotherIsidWaitsForTheWriteOfTheSessionThatWasCut) {
  hold_write(ready_peer(), 0, 'o');
  newest_link().sever();
  reactor_.run_until_idle();
  expect_the_new_write_to_stay(log_in({.isid = 2}));
}

TEST_F(SessionEndTest, AnotherInitiatorWaitsForItToo) {
  hold_write(ready_peer(), 0, 'o');
  newest_link().sever();
  reactor_.run_until_idle();
  expect_the_new_write_to_stay(log_in({.name = test::other_host_name}));
}

TEST_F(SessionEndTest, ALoginMeetsASessionThatIsBeingEndedByACall) {
  hold_write(ready_peer(), 0, 'o');
  Peer& next = begin_login({.isid = 2});
  std::optional<size_t> ended;
  server_->end_sessions("", std::string(test::box_name), {iscsi::Errc::closed_locally, "a test"},
                        [&](size_t count) { ended = count; });
  reactor_.run_until_idle();
  EXPECT_FALSE(ended) << "a write of it is still at the disk";
  EXPECT_FALSE(next.logged_in());
  store_->release();
  reactor_.run_until_idle();
  EXPECT_TRUE(ended);
}

TEST_F(SessionEndTest, ALunForOneNexusEndsTheOldOneOfAnotherIsidFirst) {
  one_nexus_only();
  Peer& old = ready_peer();
  hold_write(old, 0, 'o');
  Peer& next = log_in({.isid = 2});
  EXPECT_TRUE(old.closed());
  expect_the_new_write_to_stay(next);
}

TEST_F(SessionEndTest, SessionsThatShareALunAreNotDisturbed) {
  Peer& neighbour = ready_peer({.name = test::other_host_name});
  hold_write(ready_peer(), 0, 'o');
  newest_link().sever();
  Peer& next = log_in({.isid = 2});
  neighbour.write(1, 'x');
  reactor_.run_until_idle();
  EXPECT_EQ(on_disk(1), 'x');
  expect_the_new_write_to_stay(next);
  EXPECT_FALSE(neighbour.closed());
}

TEST_F(SessionEndTest, ALoginWithTheTsihOfItsSessionTakesItsPlace) {
  Peer& old = ready_peer({.cid = 3});
  hold_write(old, 0, 'o');
  Peer& next = log_in({.tsih = old.tsih(), .cid = 3});
  EXPECT_TRUE(old.closed());
  expect_the_new_write_to_stay(next);
  EXPECT_EQ(next.tsih(), old.tsih());
}

TEST_F(SessionEndTest, ALoginWithATsihOfNoSessionIsToldThatThereIsNone) {
  Peer& old = ready_peer();
  EXPECT_EQ(log_in({.tsih = 999}).refused_with(), iscsi::LoginStatus::session_does_not_exist);
  EXPECT_EQ(log_in({.isid = 2, .tsih = old.tsih()}).refused_with(),
            iscsi::LoginStatus::session_does_not_exist);
  EXPECT_EQ(log_in({.tsih = old.tsih(), .cid = 1}).refused_with(),
            iscsi::LoginStatus::too_many_connections);
  EXPECT_FALSE(old.closed());
}

TEST_F(SessionEndTest, ANewAccessTableEndsTheSessionsThatItWouldNotLetIn) {
  Peer& barred = ready_peer();
  Peer& other = ready_peer({.name = test::other_host_name});
  hold_write(barred, 3, 'o');
  bar(test::host_name);
  reactor_.run_until_idle();
  EXPECT_TRUE(barred.closed());
  EXPECT_FALSE(other.closed());
  Peer& next = log_in({.name = test::other_host_name, .isid = 2});
  EXPECT_FALSE(next.logged_in()) << "a write of the old session is still at the disk";
  store_->release();
  reactor_.run_until_idle();
  EXPECT_TRUE(next.logged_in());
}

TEST_F(SessionEndTest, ANewAccessTableEndsALoginThatWaits) {
  Peer& old = ready_peer();
  hold_write(old, 3, 'o');
  old.close();
  Peer& waiting = log_in();
  EXPECT_FALSE(waiting.closed());
  bar(test::host_name);
  reactor_.run_until_idle();
  EXPECT_TRUE(waiting.closed());
  store_->release();
  reactor_.run_until_idle();
  EXPECT_FALSE(waiting.logged_in());
}

// Calls something a number of loop turns later, between what else runs then.
class TurnsLater final : Deferred {
 public:
  TurnsLater(Reactor& reactor, int turns, std::function<void()> call)
      : reactor_(reactor), left_(turns), call_(std::move(call)) {
    reactor_.defer(*this);
  }

 private:
  void run_deferred() override {
    if (left_-- == 0) return call_();
    reactor_.defer(*this);
  }
  Reactor& reactor_;
  int left_;
  const std::function<void()> call_;
};

constexpr int turns_of_a_login_max = 10;
constexpr int turns_of_a_logout_max = 40;

TEST_F(SessionEndTest, ALoginMeetsItsWithdrawalAtAnyMoment) {
  for (int turns = 0; turns < turns_of_a_login_max; ++turns) {
    Peer& peer = begin_login();
    TurnsLater call(reactor_, turns, [&] { bar(test::host_name); });
    reactor_.run_until_idle();
    EXPECT_TRUE(peer.closed()) << turns;
    bar("");
    reactor_.run_until_idle();
  }
  EXPECT_GT(opened_, 0) << "the last ones came after the login";
}

TEST_F(SessionEndTest, ACallThatEndsSessionsMeetsALogoutAtAnyMoment) {
  for (int turns = 0; turns < turns_of_a_logout_max; ++turns) {
    Peer& peer = ready_peer();
    std::optional<size_t> ended;
    std::optional<bool> one_ended;
    std::optional<TurnsLater> call, call_for_one;
    std::vector<SessionInfo> sessions;
    server_->list_sessions([&](std::vector<SessionInfo> all) { sessions = std::move(all); });
    reactor_.run_until_idle();
    ASSERT_EQ(sessions.size(), 1u);
    call.emplace(reactor_, turns, [&] {
      server_->end_sessions("", std::string(test::box_name),
                            {iscsi::Errc::closed_locally, "a test"},
                            [&](size_t count) { ended = count; });
      server_->end_session(sessions[0].id, {iscsi::Errc::closed_locally, "a test"},
                           [&](bool found) { one_ended = found; });
    });
    peer.log_out();
    reactor_.run_until([&] { return ended && one_ended; }, std::chrono::seconds(60));
    EXPECT_TRUE(ended.has_value()) << "the call never returns, " << turns;
    EXPECT_TRUE(one_ended.has_value()) << "the call never returns, " << turns;
    EXPECT_TRUE(peer.closed()) << turns;
  }
}

TEST_F(SessionEndTest, AShutdownMeetsALogoutAtAnyMoment) {
  for (int turns = 0; turns < turns_of_a_logout_max; ++turns) {
    Peer& peer = ready_peer();
    bool down = false;
    std::optional<TurnsLater> call;
    call.emplace(reactor_, turns, [&] { server_->shutdown([&] { down = true; }); });
    peer.log_out();
    reactor_.run_until([&] { return down; }, std::chrono::seconds(60));
    EXPECT_TRUE(down) << "the shutdown never ends, " << turns;
    reactor_.run_until_idle();
    start_server();
  }
}

}  // namespace
}  // namespace vjbod::target
