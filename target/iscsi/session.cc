// SPDX-License-Identifier: Apache-2.0
// The life cycle of a session; its login, commands and control PDUs are in the session_*.cc files
// beside this one.
#include "target/iscsi/session.h"

#include <utility>

#include "common/base/check.h"
#include "common/iscsi/errc.h"
#include "common/iscsi/pdu_codec.h"
#include "common/iscsi/pdu_rules.h"

namespace vjbod::target {

Session::Session(SessionId id, SessionHost& host, std::unique_ptr<transport::DataMover> mover)
    : id_(id),
      host_(host),
      reactor_(host.reactor()),
      mover_(std::move(mover)),
      log_(fmt::format("session {} {}", id, mover_->peer())),
      since_(reactor_.now()),
      deadline_(reactor_,
                [this] {
                  terminate({iscsi::Errc::timed_out,
                             state_ == State::full_feature
                                 ? "the initiator did not log out in time"
                                 : "the login was not complete within its deadline"});
                }),
      keepalive_(reactor_, [this] { on_keepalive_timer(); }) {}

Session::~Session() {
  VJBOD_CHECK(state_ == State::gone, "session {} destroyed in state {}", id_,
              static_cast<int>(state_));
}

void Session::start() {
  deadline_.arm_after(host_.limits().login_deadline);
  mover_->start(*this);
}

void Session::on_control(const transport::ReceivedControl& received) {
  if (state_ == State::login || state_ == State::admission) {
    if (const auto* request = std::get_if<iscsi::LoginRequest>(&received.pdu)) {
      on_login_request(*request, received.data);
    } else {
      if (received.task != transport::no_task) mover_->end_task(received.task);
      if (login_) {
        take(login_->on_other_pdu());
      } else {
        terminate({iscsi::Errc::protocol, "the first PDU was not a Login Request"});
      }
    }
    return;
  }
  if (state_ != State::full_feature || logout_itt_) {
    if (received.task != transport::no_task) mover_->end_task(received.task);
    return;  // on its way out; what still comes is nobody's
  }
  if (refuse_invalid(received)) return;
  const ConstBytes header = received.header_bytes;
  if (const auto* command = std::get_if<iscsi::ScsiCommand>(&received.pdu)) {
    on_scsi_command(*command, received);
  } else if (const auto* management = std::get_if<iscsi::TaskManagementRequest>(&received.pdu)) {
    if (accept_command(management->cmd_sn, management->immediate, header)) {
      on_task_management(*management);
    }
  } else if (const auto* nop = std::get_if<iscsi::NopOut>(&received.pdu)) {
    if (accept_command(nop->cmd_sn, nop->immediate, header)) {
      finish_command(nop->immediate);
      on_nop_out(*nop, received.data);
    }
  } else if (const auto* text = std::get_if<iscsi::TextRequest>(&received.pdu)) {
    if (accept_command(text->cmd_sn, text->immediate, header)) {
      finish_command(text->immediate);
      on_text_request(*text, received.data, header);
    }
  } else if (const auto* logout = std::get_if<iscsi::LogoutRequest>(&received.pdu)) {
    if (accept_command(logout->cmd_sn, logout->immediate, header)) {
      finish_command(logout->immediate);
      on_logout_request(*logout);
    }
  } else if (std::holds_alternative<iscsi::SnackRequest>(received.pdu)) {
    // ErrorRecoveryLevel 0 has no SNACK (RFC 7143 section 11.16).
    reject(iscsi::RejectReason::snack_reject, header);
  } else {
    protocol_error("a PDU that does not belong into full feature phase");
  }
}

// A header that the RFC does not allow is rejected whole; it has used up its CmdSN all the same.
bool Session::refuse_invalid(const transport::ReceivedControl& received) {
  const auto header = received.header_bytes.first<iscsi::bhs_bytes>();
  const auto reason = iscsi::invalid(received.pdu, iscsi::bhs_data_segment_length(header),
                                     iscsi::bhs_total_ahs_bytes(header));
  if (!reason) return false;
  report_rejected(*reason);
  if (received.task != transport::no_task) mover_->end_task(received.task);
  const bool immediate = iscsi::is_immediate(received.pdu);
  const bool numbered = !std::holds_alternative<iscsi::SnackRequest>(received.pdu) &&
                        !std::holds_alternative<iscsi::DataOut>(received.pdu);
  if (numbered) {
    if (!accept_command(iscsi::command_number(received.pdu), immediate, header)) return true;
    finish_command(immediate);
  }
  reject(iscsi::RejectReason::invalid_pdu_field, header);
  return true;
}

void Session::on_peer_alive() {
  last_heard_ = reactor_.now();
  keepalive_asked_ = keepalive_looking_ = false;
}

void Session::on_keepalive_timer() {
  const ServerLimits& limits = host_.limits();
  const Duration silent = reactor_.now() - last_heard_;
  if (silent < limits.keepalive_idle) {
    keepalive_.arm_at(last_heard_ + limits.keepalive_idle);
    return;
  }
  if (!keepalive_asked_ || reactor_.now() - keepalive_.deadline() > keepalive_late_max) {
    keepalive_asked_ = true;
    keepalive_looking_ = false;
    iscsi::NopIn nop;
    nop.ttt = next_ttt_++ & 0x7fffffff;
    send(nop, {}, false);
    keepalive_.arm_after(limits.keepalive_answer);
    return;
  }
  // Timers run before sockets are read: the answer may be there already.
  if (!std::exchange(keepalive_looking_, true)) {
    keepalive_.arm_after(keepalive_last_look);
    return;
  }
  terminate({iscsi::Errc::timed_out,
             fmt::format("nothing was heard from the initiator for {} s, a NOP-In included",
                         std::chrono::duration_cast<std::chrono::seconds>(silent).count())});
}

void Session::terminate(const Error& reason) {
  if (state_ == State::closing || state_ == State::draining || state_ == State::gone) return;
  end_reason_ = reason;
  begin_to_end(State::closing);
  mover_->terminate(reason);
}

void Session::begin_to_end(State next) {
  const bool was_open = state_ == State::full_feature;
  state_ = next;
  deadline_.cancel();
  keepalive_.cancel();
  if (was_open) host_.on_session_ending(*this);
}

void Session::ask_to_log_out(const Error& reason) {
  if (state_ != State::full_feature) {
    terminate(reason);
    return;
  }
  const Duration grace = host_.limits().logout_grace;
  iscsi::AsyncMessage message;
  message.event = iscsi::AsyncEvent::logout_request;
  message.parameter3 =
      static_cast<uint16_t>(std::chrono::duration_cast<std::chrono::seconds>(grace).count());
  send(message, {});
  deadline_.arm_after(grace);
}

void Session::set_luns(const std::vector<scsi::LunMapping>& luns) {
  if (state_ != State::full_feature || !nexus_) return;
  if (vjbod::Status set = nexus_->set_luns(luns); !set) {
    terminate(set.error());
  }
}

void Session::protocol_error(std::string_view what) {
  terminate({iscsi::Errc::protocol, fmt::format("the initiator sent {}", what)});
}

void Session::on_closed(const Error& reason) {
  VJBOD_CHECK(state_ != State::draining && state_ != State::gone);
  const bool was_login = tsih_ == 0;
  if (state_ != State::closing) end_reason_ = reason;
  begin_to_end(State::draining);
  if (was_login) host_.on_login_failed(*this, end_reason_);
  // First mark every task aborted, then tell those in a data phase that their data will not come:
  // none of them may go on to the backstore with memory that was never filled.
  if (nexus_ && !nexus_draining_) {
    nexus_draining_ = true;
    nexus_->drain();
  }
  for (CommandTask& task : tasks_) {
    if (!task.transferring) continue;
    task.transferring = false;
    if (task.state == CommandTask::State::completed) {
      release(task);
    } else {
      data_moved_later(task);
    }
  }
  if (!nexus_) finish_draining();
}

void Session::on_nexus_drained() {
  nexus_.reset();
  if (logout_itt_ && state_ == State::full_feature) {
    finish_logout();
    return;
  }
  if (state_ == State::draining) finish_draining();
}

void Session::finish_draining() {
  VJBOD_CHECK(running_tasks_ == 0, "{} tasks outlived their nexus", running_tasks_);
  state_ = State::gone;
  reactor_.defer(*this);
}

void Session::data_moved_later(CommandTask& task) {
  moved_.push_back(task);
  reactor_.defer(*this);
}

void Session::run_deferred() {
  while (!moved_.empty()) {
    CommandTask& task = moved_.pop_front();
    if (task.execution != nullptr) task.execution->on_data_moved(task);
  }
  if (state_ == State::gone && !std::exchange(gone_told_, true))
    host_.on_session_gone(*this, end_reason_);
}

SessionInfo Session::info() const {
  SessionInfo info;
  info.id = id_;
  info.remote_address = mover_->peer();
  info.local_address = mover_->local();
  info.transport = mover_->capabilities().kind;
  info.tsih = tsih_;
  info.since = since_;
  info.tasks_active = running_tasks_;
  info.counters = counters_;
  if (login_) {
    const LoginOutcome& outcome = login_->outcome();
    info.initiator_name = outcome.initiator_name;
    info.initiator_alias = outcome.initiator_alias;
    info.target_name = outcome.target_name;
    info.discovery = outcome.parameters.discovery;
    info.isid = outcome.isid;
    info.header_digest = outcome.parameters.header_digest;
    info.data_digest = outcome.parameters.data_digest;
    info.authenticated_user = outcome.authenticated_user;
  }
  return info;
}

}  // namespace vjbod::target
