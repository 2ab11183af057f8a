// SPDX-License-Identifier: Apache-2.0
// One iSCSI session: one connection, one generation, from the first Login Request to the proof that
// the connection is closed. Carries SCSI commands for a disk (scsi_channel.h) while it is in full
// feature phase; keeps alive, answers the target's pings, obeys its Async Messages, logs out.
//
// Owned by the supervisor (or by a discovery). On its reactor's thread. May be destroyed only after
// on_session_closed, and not from inside it. Everything that the target sends is taken for hostile:
// what does not fit ends the session with a reason that says so.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/log.h"
#include "common/iscsi/command_window.h"
#include "common/iscsi/status_sequence.h"
#include "common/iscsi/text.h"
#include "common/runtime/reactor.h"
#include "common/transport/data_mover.h"
#include "initiator/session/login_machine.h"
#include "initiator/session/scsi_channel.h"
#include "initiator/session/session_config.h"

namespace vjbod::initiator {

// Commands of one session under way at the most; the tag's low bits name the slot.
inline constexpr uint32_t session_commands_max = 1024;
// All text of one Text exchange. SendTargets of a box with a thousand targets fits.
inline constexpr size_t session_text_bytes_max = 256 * 1024;
// PDUs that we sent in answer to the target's pings without a proof that it reads them. At the
// first number we ask for that proof, at the second the session ends: our send queue is bounded,
// and a peer that only writes must not fill it.
inline constexpr uint32_t unproven_answers_ask = 256;
inline constexpr uint32_t unproven_answers_max = 1024;

class Session final : public ScsiChannel, private transport::DataMoverEvents {
 public:
  using TextDone = std::function<void(Result<std::string>)>;

  // `mover` is connected and not started. `commands_max` <= session_commands_max.
  Session(Reactor& reactor, std::unique_ptr<transport::DataMover> mover,
          const SessionConfig& config, uint32_t commands_max, std::string_view log_prefix,
          SessionEvents& events);
  ~Session();

  void start();
  // In order: no new commands, those under way may come in for a while, then a logout. Every step
  // has its deadline; on_session_closed follows. During the login: at once.
  void close(const Error& reason);
  // Without ceremony. on_session_closed follows.
  void abort(const Error& reason);

  // ScsiChannel
  bool can_issue() const override {
    return state_ == State::full_feature && !free_slots_.empty() && credit_.room() > 0;
  }
  void issue(ChannelCommand& command) override;

  // A Text Request in full feature phase, one at a time. `done` comes once, unless the session
  // closes first.
  void send_text(const std::string& text, TextDone done);

  bool in_full_feature() const { return state_ == State::full_feature; }
  size_t commands_under_way() const { return commands_under_way_; }
  uint64_t commands_answered() const { return commands_answered_; }
  std::string peer() const { return mover_->peer(); }
  std::string local() const { return mover_->local(); }
  transport::Kind kind() const { return mover_->capabilities().kind; }
  const iscsi::NegotiatedParameters& parameters() const { return parameters_; }
  // Why the login failed, if it did.
  const LoginFailure* login_failure() const { return failure_ ? &*failure_ : nullptr; }

 private:
  enum class State { idle, logging_in, full_feature, draining, logging_out, terminating, closed };
  struct Slot {
    ChannelCommand* command = nullptr;
    uint32_t uses = 0;  // in the upper bits of the tag: an answer to an earlier use is noticed
    TimePoint issued_at{};
  };

  // DataMoverEvents
  void on_control(const transport::ReceivedControl& received) override;
  void on_transfer_done(transport::TaskHandle) override {}  // the target's
  void on_peer_alive() override { last_alive_ = reactor_.now(); }
  void on_closed(const Error& reason) override;

  LoginSettings login_settings() const;
  void take_login_step(const LoginStep& step);
  void login_done();

  void on_pdu(const iscsi::NopIn& pdu, const transport::ReceivedControl& received);
  void on_pdu(const iscsi::ScsiResponse& pdu, const transport::ReceivedControl& received);
  void on_pdu(const iscsi::TextResponse& pdu, const transport::ReceivedControl& received);
  void on_pdu(const iscsi::TaskManagementResponse& pdu, const transport::ReceivedControl& received);
  void on_pdu(const iscsi::LogoutResponse& pdu, const transport::ReceivedControl& received);
  void on_pdu(const iscsi::AsyncMessage& pdu, const transport::ReceivedControl& received);
  void on_pdu(const iscsi::Reject& pdu, const transport::ReceivedControl& received);
  template <typename Other>
  void on_pdu(const Other& pdu, const transport::ReceivedControl& received);
  bool take_numbers(const transport::ReceivedControl& received);
  Slot* find_slot(uint32_t itt);
  void note_window_closed();
  bool window_is_stuck() const;

  void send(iscsi::Pdu pdu, ConstBytes data = {});
  void send_ping();
  void send_fence();
  void send_logout();
  void protocol_error(const std::string& what);
  void on_deadline();
  void on_keepalive();
  void on_command_timer();
  uint32_t next_control_tag();

  Reactor& reactor_;
  std::unique_ptr<transport::DataMover> mover_;
  SessionConfig config_;
  SessionEvents& events_;
  PrefixLogger log_;
  State state_ = State::idle;

  std::optional<LoginMachine> login_;
  std::optional<LoginFailure> failure_;
  iscsi::NegotiatedParameters parameters_;
  iscsi::CommandCredit credit_;
  iscsi::ExpectedStatus status_;
  transport::SequenceNumbers numbers_;  // lent to the mover

  std::vector<Slot> slots_;
  std::vector<uint16_t> free_slots_;
  IntrusiveList<ChannelCommand> issued_;  // oldest first
  size_t commands_under_way_ = 0;
  uint64_t commands_answered_ = 0;
  bool window_was_closed_ = false;  // somebody waits for on_window_open
  TimePoint window_closed_at_{};

  uint32_t control_tags_ = 0;
  uint32_t ping_tag_ = iscsi::reserved_tag;
  TimePoint ping_sent_at_{};
  uint32_t fence_tag_ = iscsi::reserved_tag;
  uint32_t logout_tag_ = iscsi::reserved_tag;
  uint32_t text_tag_ = iscsi::reserved_tag;
  iscsi::TextAssembler text_{session_text_bytes_max};
  TextDone text_done_;
  uint32_t unproven_answers_ = 0;

  TimePoint last_alive_{};
  Error close_reason_;
  Timer deadline_;  // of the login, the fence, the drain, the logout
  Timer keepalive_;
  Timer command_timer_;
};

}  // namespace vjbod::initiator
