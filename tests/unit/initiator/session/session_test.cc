// SPDX-License-Identifier: Apache-2.0
#include "initiator/session/session.h"

#include <list>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/runtime/manual_reactor.h"
#include "common/scsi/lun.h"
#include "tests/unit/initiator/fake_target.h"

namespace vjbod::initiator {
namespace {

using namespace std::chrono_literals;
using test::FakeTarget;

struct Command final : ChannelCommand, ChannelCommandOwner {
  explicit Command(const scsi::Command& command) {
    cdb = scsi::encode(command);
    lun = scsi::encode_lun(0);
    owner = this;
  }
  void on_command_done(ChannelCommand&, const ChannelCompletion& c) override {
    ++completions;
    completion = c;
    sense.assign(c.sense.begin(), c.sense.end());
  }
  int completions = 0;
  ChannelCompletion completion;
  std::vector<std::byte> sense;
};

class SessionTest : public testing::Test, protected SessionEvents {
 protected:
  ~SessionTest() override {
    if (session && !closed) session->abort({iscsi::Errc::closed_locally, "the test is over"});
    target.stop();
    reactor.run_until_idle();
  }
  void on_logged_in() override { ++logged_in; }
  void on_window_open() override { ++window_opened; }
  void on_session_closed(const Error& reason, bool is_permanent) override {
    ASSERT_FALSE(closed);
    closed = reason;
    permanent = is_permanent;
  }

  void connect() {
    attempt = connector->connect({"10.0.0.2", 3260, {}, {}}, 3s, [this](auto mover) {
      ASSERT_TRUE(mover.has_value());
      session = std::make_unique<Session>(reactor, std::move(*mover), config, commands_max, "test",
                                          static_cast<SessionEvents&>(*this));
      session->start();
    });
    reactor.run_until_idle();
  }
  void log_in() {
    connect();
    ASSERT_EQ(logged_in, 1);
  }
  Command& make(const scsi::Command& command) { return commands.emplace_back(command); }
  std::string reason() const { return closed ? closed->text : "(not closed)"; }
  FakeTarget::Connection& peer() { return *target.connection(); }

  ManualReactor reactor;
  transport::MemoryNetwork network{reactor};
  FakeTarget target{reactor, network};
  std::unique_ptr<transport::Connector> connector = network.make_connector();
  std::unique_ptr<transport::ConnectAttempt> attempt;
  SessionConfig config = [] {
    SessionConfig c;
    c.initiator_name = "iqn.2026-11.io.vjbod:host";
    c.target_name = "iqn.2026-11.io.vjbod:target";
    c.isid = {std::byte{0x80}, std::byte{1}, std::byte{2},
              std::byte{3},    std::byte{4}, std::byte{5}};
    return c;
  }();
  uint32_t commands_max = 8;
  std::list<Command> commands;  // lent to the session until it has closed
  std::unique_ptr<Session> session;
  int logged_in = 0, window_opened = 0;
  std::optional<Error> closed;
  bool permanent = false;
};

TEST_F(SessionTest, LogsInWithTheIsidThatItWasGiven) {
  log_in();

  ASSERT_EQ(target.logins.size(), 1u);
  EXPECT_EQ(target.logins[0], config.isid);
  EXPECT_TRUE(session->can_issue());
}

TEST_F(SessionTest, CarriesAReadAndAWrite) {
  log_in();
  std::vector<std::byte> out(4096, std::byte{0x5a}), in(4096);
  Command& write = make(scsi::Write{.lba = 8, .blocks = 8});
  write.write = out;
  Command& read = make(scsi::Read{.lba = 8, .blocks = 8});
  read.read = in;

  session->issue(write);
  reactor.run_until_idle();
  session->issue(read);
  reactor.run_until_idle();

  EXPECT_EQ(write.completions, 1);
  EXPECT_EQ(read.completions, 1);
  EXPECT_EQ(read.completion.data_bytes, 4096u);
  EXPECT_EQ(in, out);
}

TEST_F(SessionTest, HandsOverTheSenseOfAFailedCommand) {
  log_in();
  target.refuse = [](const auto&) {
    return test::check_condition(scsi::SenseKey::medium_error, scsi::asc::unrecovered_read_error);
  };
  Command& command = make(scsi::TestUnitReady{});

  session->issue(command);
  reactor.run_until_idle();

  ASSERT_EQ(command.completion.status, static_cast<uint8_t>(scsi::Status::check_condition));
  auto sense = scsi::parse_sense(command.sense);
  ASSERT_TRUE(sense.has_value());
  EXPECT_EQ(sense->key, scsi::SenseKey::medium_error);
}

TEST_F(SessionTest, NeverReadsSenseBeyondTheDataSegment) {
  log_in();
  target.refuse = [](const auto&) {
    return test::check_condition(scsi::SenseKey::not_ready, scsi::asc::not_ready);
  };
  target.distort_response = [](iscsi::ScsiResponse&, std::vector<std::byte>& data) {
    data[0] = std::byte{0xff};
  };
  Command& command = make(scsi::TestUnitReady{});

  session->issue(command);
  reactor.run_until_idle();

  EXPECT_EQ(command.completions, 1);
  EXPECT_EQ(command.sense.size(), scsi::fixed_sense_bytes);
}

TEST_F(SessionTest, StopsAtTheCommandWindowAndTellsWhenItOpens) {
  target.window = 2;
  target.ignore = [](const auto&) { return true; };
  log_in();
  Command& first = make(scsi::TestUnitReady{});
  Command& second = make(scsi::TestUnitReady{});
  session->issue(first);
  session->issue(second);
  ASSERT_FALSE(session->can_issue());

  reactor.run_until_idle();
  target.window = 4;
  peer().send(iscsi::NopIn{});
  reactor.run_until_idle();

  EXPECT_EQ(window_opened, 1);
  EXPECT_TRUE(session->can_issue());
}

TEST_F(SessionTest, EndsWhenTheTargetAnswersAndNeverTakesACommandAgain) {
  target.window = 0;
  log_in();
  ASSERT_FALSE(session->can_issue());

  reactor.advance(110s);
  EXPECT_FALSE(closed);
  reactor.advance(30s);

  EXPECT_THAT(reason(), testing::HasSubstr("taken no command"));
}

TEST_F(SessionTest, StopsWhenAllTagsAreInUse) {
  commands_max = 1;
  log_in();
  Command& command = make(scsi::TestUnitReady{});

  session->issue(command);
  EXPECT_FALSE(session->can_issue());
  reactor.run_until_idle();

  EXPECT_TRUE(session->can_issue());
  EXPECT_EQ(window_opened, 1);
}

TEST_F(SessionTest, GivesBackUnansweredCommandsByClosing) {
  target.ignore = [](const auto&) { return true; };
  log_in();
  Command& command = make(scsi::TestUnitReady{});
  session->issue(command);
  reactor.run_until_idle();

  network.links().front()->sever();
  reactor.run_until_idle();

  EXPECT_TRUE(closed);
  EXPECT_EQ(command.completions, 0);
  EXPECT_FALSE(command.linked());
}

TEST_F(SessionTest, ClosesWhenTheTargetDoesNotFinishTheLogin) {
  target.swallow_logins = true;
  connect();

  reactor.advance(16s);

  EXPECT_EQ(closed->code, iscsi::Errc::timed_out);
}

TEST_F(SessionTest, ReportsARefusedLoginWithItsStatus) {
  target.login_status = 0x0201;
  connect();

  ASSERT_TRUE(closed);
  EXPECT_TRUE(permanent);
  EXPECT_THAT(reason(), testing::HasSubstr("0x0201"));
  EXPECT_EQ(session->login_failure()->status, iscsi::LoginStatus::authentication_failure);
}

TEST_F(SessionTest, AsksForASignOfLifeOnlyWhenIdle) {
  log_in();
  reactor.advance(14s);
  ASSERT_EQ(target.pings, 0u);
  peer().send(iscsi::NopIn{});  // any byte is life
  reactor.advance(14s);
  ASSERT_EQ(target.pings, 0u);

  reactor.advance(2s);

  EXPECT_EQ(target.pings, 1u);
  reactor.advance(120s);
  EXPECT_FALSE(closed);
}

TEST_F(SessionTest, ClosesWhenTheTargetIsSilentForBothPeriods) {
  target.answer_pings = false;
  log_in();

  reactor.advance(29s);
  EXPECT_FALSE(closed);
  reactor.advance(2s);

  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->code, iscsi::Errc::timed_out);
}

// The machine was suspended, or this process was stopped: no timer ran and nothing was read.
TEST_F(SessionTest, AsksBeforeItGivesUpHoweverLongItSleptItself) {
  log_in();

  reactor.sleep_through(600s);
  reactor.advance(14s);

  EXPECT_EQ(target.pings, 1u);
  EXPECT_FALSE(closed) << reason();
}

TEST_F(SessionTest, GivesUpOnlyTheKeepaliveTimeoutAfterItAsked) {
  target.answer_pings = false;
  log_in();

  reactor.sleep_through(600s);
  reactor.advance(14s);
  EXPECT_FALSE(closed) << reason();
  reactor.advance(2s);

  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->code, iscsi::Errc::timed_out);
}

TEST_F(SessionTest, IsNotReadyBeforeWhatAnEarlierSessionLeftIsAborted) {
  config.fence_lun = scsi::encode_lun(3);
  connect();
  ASSERT_EQ(logged_in, 0);
  ASSERT_EQ(target.task_management.size(), 1u);
  EXPECT_EQ(target.task_management[0].function, iscsi::TaskManagementFunction::abort_task_set);
  EXPECT_EQ(target.task_management[0].lun, scsi::encode_lun(3));
  EXPECT_TRUE(target.task_management[0].immediate);

  iscsi::TaskManagementResponse response;
  response.itt = target.task_management[0].itt;
  peer().send(response);
  reactor.run_until_idle();

  EXPECT_EQ(logged_in, 1);
}

TEST_F(SessionTest, GoesOnWithATargetThatCannotAbortATaskSet) {
  config.fence_lun = scsi::encode_lun(0);
  target.task_management_result = iscsi::TaskManagementResult::not_supported;

  connect();

  EXPECT_EQ(logged_in, 1);
  reactor.advance(60s);
  EXPECT_FALSE(closed) << reason();
}

TEST_F(SessionTest, ClosesWhenTheFenceIsNotAnswered) {
  config.fence_lun = scsi::encode_lun(0);
  connect();

  reactor.advance(31s);

  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->code, iscsi::Errc::timed_out);
  EXPECT_EQ(logged_in, 0);
}

TEST_F(SessionTest, ALateAnswerToAPingIsNoError) {
  target.answer_pings = false;
  log_in();
  reactor.advance(16s);
  ASSERT_EQ(target.pings, 1u);
  peer().send(iscsi::NopIn{});
  reactor.advance(20s);

  target.answer_pings = true;
  reactor.advance(60s);

  // The ping that was never answered ended the connection in the end, or none did: never a
  // protocol error.
  EXPECT_TRUE(!closed || closed->code == iscsi::Errc::timed_out) << reason();
}

TEST_F(SessionTest, AnswersThePingsOfTheTarget) {
  log_in();
  iscsi::NopIn ping;
  ping.ttt = 5;

  peer().send(ping);
  reactor.run_until_idle();

  EXPECT_EQ(peer().answers_to_pings, 1u);
  EXPECT_FALSE(closed);
}

TEST_F(SessionTest, EndsAFloodOfPingsFromATargetThatReadsNothing) {
  target.answer_pings = false;
  log_in();
  iscsi::NopIn ping;
  ping.ttt = 5;

  for (uint32_t i = 0; i <= unproven_answers_max && !closed; ++i) {
    peer().send(ping);
    reactor.run_until_idle();
  }

  ASSERT_TRUE(closed);
  EXPECT_THAT(reason(), testing::HasSubstr("pings without end"));
}

TEST_F(SessionTest, AManyTimesPingedSessionStaysWhenTheTargetReads) {
  log_in();
  iscsi::NopIn ping;
  ping.ttt = 5;

  for (uint32_t i = 0; i < 3 * unproven_answers_max; ++i) {
    peer().send(ping);
    reactor.run_until_idle();
  }

  EXPECT_FALSE(closed);
}

TEST_F(SessionTest, GetsAStuckCommandBackByClosing) {
  target.ignore = [](const auto&) { return true; };
  log_in();
  Command& command = make(scsi::TestUnitReady{});
  session->issue(command);

  reactor.advance(121s);

  ASSERT_TRUE(closed);
  EXPECT_THAT(reason(), testing::HasSubstr("has not answered a command for 120 s"));
}

TEST_F(SessionTest, LogsOutInOrder) {
  log_in();

  session->close({iscsi::Errc::closed_locally, "by request"});
  reactor.run_until_idle();

  EXPECT_EQ(target.logouts, 1u);
  EXPECT_EQ(reason(), "by request");
}

TEST_F(SessionTest, LetsCommandsUnderWayComeInBeforeTheLogout) {
  log_in();
  network.links().front()->set_delay(transport::Role::target, 1s);
  Command& command = make(scsi::TestUnitReady{});
  session->issue(command);

  session->close({iscsi::Errc::closed_locally, "by request"});
  reactor.advance(10s);

  EXPECT_EQ(command.completions, 1);
  EXPECT_EQ(target.logouts, 1u);
}

TEST_F(SessionTest, ClosesWithinItsDeadlinesWhenTheTargetIsDead) {
  target.ignore = [](const auto&) { return true; };
  log_in();
  Command& command = make(scsi::TestUnitReady{});
  session->issue(command);
  reactor.run_until_idle();
  network.links().front()->stall(transport::Role::initiator);

  session->close({iscsi::Errc::closed_locally, "by request"});
  reactor.advance(3s);

  EXPECT_TRUE(closed);
}

TEST_F(SessionTest, ObeysARequestToLogOut) {
  log_in();
  iscsi::AsyncMessage message;
  message.event = iscsi::AsyncEvent::logout_request;

  peer().send(message);
  reactor.run_until_idle();

  EXPECT_EQ(target.logouts, 1u);
  EXPECT_THAT(reason(), testing::HasSubstr("asked for a logout"));
}

TEST_F(SessionTest, ClosesWhenTheTargetAnnouncesTheEnd) {
  log_in();
  iscsi::AsyncMessage message;
  message.event = iscsi::AsyncEvent::session_dropped;

  peer().send(message);
  reactor.run_until_idle();

  EXPECT_THAT(reason(), testing::HasSubstr("announced that it drops the session"));
}

// --- hostile targets ---

TEST_F(SessionTest, ClosesOnAReject) {
  log_in();
  std::array<std::byte, iscsi::bhs_bytes> header{};
  iscsi::encode_bhs(iscsi::NopOut{}, 0, 0, header);

  peer().send(iscsi::Reject{}, header);
  reactor.run_until_idle();

  EXPECT_THAT(reason(), testing::HasSubstr("rejected NOP-Out"));
}

TEST_F(SessionTest, ClosesOnAnAnswerToAPingThatWasNeverSent) {
  log_in();
  iscsi::NopIn answer;
  answer.itt = 12345;

  peer().send(answer);
  reactor.run_until_idle();

  EXPECT_EQ(closed->code, iscsi::Errc::protocol);
}

TEST_F(SessionTest, ClosesOnTextNobodyAskedFor) {
  log_in();

  iscsi::TextResponse text;
  text.final = true;
  peer().send(text);
  reactor.run_until_idle();

  EXPECT_THAT(reason(), testing::HasSubstr("text that nobody asked for"));
}

TEST_F(SessionTest, ClosesOnATaskManagementResponseOutOfNowhere) {
  log_in();

  peer().send(iscsi::TaskManagementResponse{});
  reactor.run_until_idle();

  EXPECT_THAT(reason(), testing::HasSubstr("task management request that was never sent"));
}

TEST_F(SessionTest, ClosesOnAHeaderThatTheRfcDoesNotAllow) {
  log_in();
  iscsi::TaskManagementResponse response;
  response.itt = iscsi::reserved_tag;

  peer().send(response);
  reactor.run_until_idle();

  EXPECT_EQ(closed->code, iscsi::Errc::protocol);
  EXPECT_THAT(reason(), testing::HasSubstr("Initiator Task Tag is the reserved one"));
}

TEST_F(SessionTest, ClosesOnASecondLoginResponse) {
  log_in();

  peer().send(iscsi::LoginResponse{});
  reactor.run_until_idle();

  EXPECT_THAT(reason(), testing::HasSubstr("must not come now"));
}

TEST_F(SessionTest, ClosesOnAnUnexpectedLogoutResponse) {
  log_in();

  peer().send(iscsi::LogoutResponse{});
  reactor.run_until_idle();

  EXPECT_EQ(closed->code, iscsi::Errc::protocol);
}

TEST_F(SessionTest, ClosesOnAResidualLargerThanTheTransfer) {
  log_in();
  target.distort_response = [](iscsi::ScsiResponse& response, auto&) {
    response.underflow = true;
    response.residual_count = 0xffffffff;
  };
  Command& command = make(scsi::TestUnitReady{});

  session->issue(command);
  reactor.run_until_idle();

  EXPECT_EQ(closed->code, iscsi::Errc::protocol);
  EXPECT_EQ(command.completions, 0);
}

TEST_F(SessionTest, ClosesOnAJumpOfTheStatusNumber) {
  log_in();
  iscsi::AsyncMessage message;
  iscsi::Pdu pdu = message;
  iscsi::stamp_target(pdu, peer().stat_sn() + 3, SerialNumber(), SerialNumber());

  peer().send_unstamped(pdu);
  reactor.run_until_idle();

  ASSERT_TRUE(closed);
}

TEST_F(SessionTest, BearsWithATargetThatCountsTheLoginAsACommand) {
  target.counts_logins = true;
  log_in();
  Command& command = make(scsi::TestUnitReady{});
  session->issue(command);
  reactor.run_until_idle();
  EXPECT_FALSE(closed);
  EXPECT_EQ(target.commands.size(), 1U);
}

TEST_F(SessionTest, ClosesOnAnAcknowledgementOfCommandsNeverSent) {
  log_in();
  target.distort_response = nullptr;
  iscsi::NopIn news;
  Command& command = make(scsi::TestUnitReady{});
  session->issue(command);
  reactor.run_until_idle();
  iscsi::Pdu pdu = news;
  const SerialNumber far(peer().exp_cmd_sn().value + 10);
  iscsi::stamp_target(pdu, peer().stat_sn(), far, far + 10);

  peer().send_unstamped(pdu);
  reactor.run_until_idle();

  EXPECT_THAT(reason(), testing::HasSubstr("never sent"));
}

}  // namespace
}  // namespace vjbod::initiator
