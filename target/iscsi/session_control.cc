// SPDX-License-Identifier: Apache-2.0
// What a session answers besides SCSI commands: NOP, text, task management, logout, Reject.
#include "common/base/check.h"
#include "common/iscsi/errc.h"
#include "common/iscsi/pdu_codec.h"
#include "target/iscsi/discovery.h"
#include "target/iscsi/session.h"

namespace vjbod::target {

void Session::send(iscsi::Pdu pdu, ConstBytes data, bool takes_stat_sn) {
  iscsi::stamp_target(pdu, numbers_.stat_sn, numbers_.exp_cmd_sn, numbers_.max_cmd_sn);
  if (takes_stat_sn) ++numbers_.stat_sn;
  mover_->send_control(pdu, data);
}

void Session::reject(iscsi::RejectReason reason, ConstBytes header) {
  iscsi::Reject reject;
  reject.reason = reason;
  send(reject, header);
  if (rejects_ == 0 || reactor_.now() - rejects_since_ >= rejects_window) {
    rejects_since_ = reactor_.now();
    rejects_ = 0;
  }
  if (++rejects_ > rejects_max) {
    protocol_error(
        fmt::format("more than {} PDUs within {} s that had to be rejected", rejects_max,
                    std::chrono::duration_cast<std::chrono::seconds>(rejects_window).count()));
  }
}

void Session::report_rejected(std::string_view what) {
  if (const auto left_out = reject_reports_.next(reactor_.now()))
    log_.warn("a PDU was rejected: {}{}", what, left_out_text(*left_out));
}

// RFC 7143 section 11.17.1. What initiators send has a CmdSN at one place; a PDU that bears the one
// that is due has used it up.
void Session::on_unknown_opcode(ConstBytes header) {
  if (state_ != State::full_feature || logout_itt_) return;
  const auto bhs = header.first<iscsi::bhs_bytes>();
  report_rejected(fmt::format("opcode 0x{:02x} is not one of iSCSI's",
                              static_cast<unsigned>(iscsi::bhs_opcode(bhs))));
  constexpr size_t cmd_sn_at = 24;
  const SerialNumber cmd_sn(load_big_endian<uint32_t>(bhs.data() + cmd_sn_at));
  if (!iscsi::bhs_immediate(bhs) && cmd_sn == window_->exp_cmd_sn()) {
    if (!accept_command(cmd_sn, false, header)) return;
    finish_command(false);
  }
  reject(iscsi::RejectReason::command_not_supported, header);
}

void Session::on_nop_out(const iscsi::NopOut& nop, ConstBytes data) {
  if (nop.itt == iscsi::reserved_tag) return;  // the answer to our NOP-In, or a mere sign of life
  iscsi::NopIn answer;
  answer.itt = nop.itt;
  answer.lun = nop.lun;
  const size_t limit = login_->outcome().parameters.peer_max_recv_data_segment_length;
  send(answer, data.first(std::min(data.size(), limit)));
}

void Session::on_text_request(const iscsi::TextRequest& request, ConstBytes data,
                              ConstBytes header) {
  const bool continuation = request.ttt != iscsi::reserved_tag;
  if (continuation && request.ttt != text_ttt_) {
    reject(iscsi::RejectReason::invalid_pdu_field, header);
    return;
  }
  if (!continuation) {  // a new request gives up whatever was going on (RFC 7143 section 11.10.4)
    text_request_.clear();
    text_response_ = {};
  }
  iscsi::TextResponse response;
  response.itt = request.itt;
  response.lun = request.lun;
  if (!data.empty() && text_request_.text().size() + data.size() > text_request_bytes_max) {
    text_request_.clear();
    reject(iscsi::RejectReason::protocol_error, header);
    return;
  }
  if (!data.empty()) (void)text_request_.add(data);
  if (request.continues) {  // an empty response asks for the rest
    text_ttt_ = next_ttt_++ & 0x7fffffff;
    response.final = false;
    response.ttt = text_ttt_;
    send(response, {});
    return;
  }
  if (!text_request_.empty()) {
    const LoginOutcome& login = login_->outcome();
    const auto view = host_.view();
    DiscoveryScope scope;
    scope.discovery_session = login.parameters.discovery;
    scope.own_target = login.target_name;
    scope.targets = view->access->targets_of(login.initiator_name);
    const std::string reached = mover_->local();
    scope.reached_address = reached;
    scope.other_portals = view->advertised_portals;
    scope.portal_group_tag = portal_group_tag;
    auto answer = answer_text(text_request_.text(), scope);
    text_request_.clear();
    if (!answer) {
      reject(iscsi::RejectReason::protocol_error, header);
      return;
    }
    text_response_ = {};
    text_response_.append(*answer);
  }
  const size_t limit = login_->outcome().parameters.peer_max_recv_data_segment_length;
  response.continues = text_response_.continues(limit);
  response.final = !response.continues;
  text_ttt_ = response.continues ? next_ttt_++ & 0x7fffffff : iscsi::reserved_tag;
  response.ttt = text_ttt_;
  const std::string segment = text_response_.next(limit);
  send(response, as_bytes(segment));
}

void Session::on_logout_request(const iscsi::LogoutRequest& request) {
  iscsi::LogoutResponse response;
  response.itt = request.itt;
  if (request.reason == iscsi::LogoutReason::remove_for_recovery) {
    response.result = iscsi::LogoutResult::recovery_not_supported;
    send(response, {});
    return;
  }
  if (request.reason == iscsi::LogoutReason::close_connection &&
      request.cid != login_->outcome().cid) {
    response.result = iscsi::LogoutResult::cid_not_found;
    send(response, {});
    return;
  }
  // The answer says that every task is over, so it comes after the last one has drained.
  logout_itt_ = request.itt;
  if (!nexus_) {
    finish_logout();
    return;
  }
  nexus_draining_ = true;
  nexus_->drain();
}

void Session::finish_logout() {
  iscsi::LogoutResponse response;
  response.itt = *logout_itt_;
  send(response, {});
  terminate({iscsi::Errc::closed_locally, "the initiator logged out"});
}

void Session::answer_task_management(uint32_t itt, iscsi::TaskManagementResult result) {
  iscsi::TaskManagementResponse response;
  response.itt = itt;
  response.result = result;
  send(response, {});
}

void Session::on_task_management(const iscsi::TaskManagementRequest& request) {
  using Function = iscsi::TaskManagementFunction;
  using TaskResult = iscsi::TaskManagementResult;
  // Answered at once, unless the nexus gets it.
  auto answer = [&](TaskResult result) {
    finish_command(request.immediate);
    answer_task_management(request.itt, result);
  };
  if (!nexus_) {
    answer(TaskResult::not_supported);
    return;
  }
  ManagementSlot* slot = nullptr;
  for (ManagementSlot& candidate : managements_) {
    if (!candidate.used) slot = &candidate;
  }
  if (slot == nullptr) {
    answer(TaskResult::rejected);
    return;
  }
  slot->cold = false;
  slot->task = nullptr;
  switch (request.function) {
    case Function::abort_task: {
      CommandTask* task = find_running_task(request.referenced_task_tag);
      if (task == nullptr || task->lun != request.lun) {
        // RFC 7143 section 11.6.1: a task that is over is gone. On one connection in order, none
        // can still be on its way.
        answer(TaskResult::task_does_not_exist);
        return;
      }
      slot->task = task;
      slot->function = scsi::ManagementFunction::abort_task;
      break;
    }
    case Function::abort_task_set: slot->function = scsi::ManagementFunction::abort_task_set; break;
    case Function::clear_task_set: slot->function = scsi::ManagementFunction::clear_task_set; break;
    case Function::logical_unit_reset:
      slot->function = scsi::ManagementFunction::logical_unit_reset;
      break;
    case Function::target_warm_reset:
      slot->function = scsi::ManagementFunction::target_reset;
      break;
    case Function::target_cold_reset:
      slot->function = scsi::ManagementFunction::target_reset;
      slot->cold = true;
      break;
    case Function::task_reassign: answer(TaskResult::reassign_not_supported); return;
    default: answer(TaskResult::not_supported); return;
  }
  slot->used = true;
  slot->itt = request.itt;
  slot->immediate = request.immediate;
  slot->lun = request.lun;
  slot->owner = this;
  nexus_->manage(*slot);
}

void Session::on_managed(scsi::Management& request, scsi::ManagementResult result) {
  auto& slot = static_cast<ManagementSlot&>(request);
  slot.used = false;
  if (state_ != State::full_feature) return;
  finish_command(slot.immediate);
  answer_task_management(slot.itt, result == scsi::ManagementResult::done
                                       ? iscsi::TaskManagementResult::function_complete
                                       : iscsi::TaskManagementResult::lun_does_not_exist);
  if (slot.cold) host_.on_cold_reset(login_->outcome().target_name);
}

}  // namespace vjbod::target
