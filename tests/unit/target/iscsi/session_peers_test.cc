// SPDX-License-Identifier: Apache-2.0
// Peers that say nothing, and peers that say nonsense.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "target/iscsi/report_limit.h"
#include "target/iscsi/session.h"
#include "target/iscsi/shard_sessions.h"
#include "tests/unit/target/iscsi/server_fixture.h"

namespace vjbod::target {
namespace {

using test::Peer;
using transport::Role;

class SessionPeersTest : public test::ServerFixture {
 protected:
  void be_idle(Duration time) { reactor_.advance(time); }
  // A ping is out, and its answer does not come through before resume().
  void leave_a_ping_unanswered() {
    newest_link().stall(Role::initiator);
    be_idle(limits_.keepalive_idle);
  }
  void stand_still(Duration time) { reactor_.sleep_through(time); }
};

TEST_F(SessionPeersTest, APeerThatAnswersPingsStays) {
  Peer& peer = ready_peer();
  be_idle(std::chrono::hours(1));
  EXPECT_FALSE(peer.closed());
  EXPECT_GT(peer.count<iscsi::NopIn>(), 100u);
}

TEST_F(SessionPeersTest, APeerThatAnswersNothingIsEnded) {
  Peer& peer = ready_peer();
  peer.answers_pings = false;
  be_idle(limits_.keepalive_idle + limits_.keepalive_answer - std::chrono::seconds(1));
  EXPECT_FALSE(peer.closed());
  be_idle(std::chrono::seconds(2));
  EXPECT_TRUE(peer.closed());
  ASSERT_EQ(closed_with_.size(), 1u);
  EXPECT_THAT(closed_with_[0], testing::HasSubstr("nothing was heard"));
}

TEST_F(SessionPeersTest, AnAnswerThatWaitedWhileWeStoodStillCounts) {
  Peer& peer = ready_peer();
  leave_a_ping_unanswered();
  stand_still(std::chrono::minutes(5));
  EXPECT_FALSE(peer.closed()) << "judged before what waits was read";
  newest_link().resume(Role::initiator);
  be_idle(std::chrono::minutes(5));
  EXPECT_FALSE(peer.closed());
}

TEST_F(SessionPeersTest, AnAnswerThatComesInTheLastMomentCounts) {
  Peer& peer = ready_peer();
  leave_a_ping_unanswered();
  be_idle(limits_.keepalive_answer);
  EXPECT_FALSE(peer.closed()) << "judged before what waits was read";
  newest_link().resume(Role::initiator);
  be_idle(std::chrono::minutes(5));
  EXPECT_FALSE(peer.closed());
}

TEST_F(SessionPeersTest, APeerThatWasNotAskedYetIsNotJudgedAfterAStandstill) {
  Peer& peer = ready_peer();
  stand_still(std::chrono::minutes(5));
  EXPECT_FALSE(peer.closed());
  be_idle(std::chrono::minutes(5));
  EXPECT_FALSE(peer.closed());
}

TEST_F(SessionPeersTest, ADeadPeerIsNoticedAfterAStandstillToo) {
  Peer& peer = ready_peer();
  peer.answers_pings = false;
  stand_still(std::chrono::minutes(5));
  be_idle(limits_.keepalive_answer + std::chrono::seconds(1));
  EXPECT_TRUE(peer.closed());
}

TEST_F(SessionPeersTest, APeerThatSendsOnlyRubbishIsEndedAtTheLimit) {
  Peer& peer = ready_peer();
  auto rubbish = [&] {
    peer.send(iscsi::SnackRequest{});
    reactor_.run_until_idle();
  };
  for (uint32_t i = 0; i < Session::rejects_max; ++i) rubbish();
  EXPECT_EQ(peer.count<iscsi::Reject>(), Session::rejects_max);
  EXPECT_FALSE(peer.closed());
  be_idle(Session::rejects_window);
  for (uint32_t i = 0; i < Session::rejects_max; ++i) rubbish();
  EXPECT_FALSE(peer.closed()) << "the limit is one of a window of time";
  rubbish();
  EXPECT_TRUE(peer.closed());
  ASSERT_EQ(closed_with_.size(), 1u);
  EXPECT_THAT(closed_with_[0], testing::HasSubstr("had to be rejected"));
}

TEST_F(SessionPeersTest, MemoryOfALoadGoesBackWhenItIsOver) {
  Peer& peer = ready_peer();
  store_->hold = true;
  constexpr char writes = 32;
  for (char i = 0; i < writes; ++i) peer.write(static_cast<uint64_t>(i), 'x');
  reactor_.run_until_idle();
  const size_t loaded = buffers_.held_bytes();
  EXPECT_GE(loaded, writes * size_t{512});
  be_idle(3 * ShardSessions::trim_interval);
  EXPECT_EQ(buffers_.held_bytes(), loaded) << "lent memory stays";
  store_->release();
  reactor_.run_until_idle();
  EXPECT_EQ(buffers_.lent_bytes(), 0u);
  EXPECT_EQ(buffers_.held_bytes(), loaded) << "not at once: the load may go on";
  be_idle(2 * ShardSessions::trim_interval);
  EXPECT_EQ(buffers_.held_bytes(), 0u);
}

TEST_F(SessionPeersTest, RefusedLoginsOfAnAddressDoNotFillTheLog) {
  constexpr size_t tries = 100;
  for (size_t i = 0; i < tries; ++i) log_in({.tsih = 999});
  EXPECT_EQ(failed_with_.size(), ReportLimit::reports_max);
  be_idle(ReportLimit::window);
  log_in({.tsih = 999});
  ASSERT_EQ(failed_with_.size(), ReportLimit::reports_max + 1);
  EXPECT_THAT(failed_with_.back(), testing::HasSubstr(fmt::format(
                                       "{} more before it", tries - ReportLimit::reports_max)));
}

}  // namespace
}  // namespace vjbod::target
