// SPDX-License-Identifier: Apache-2.0
// What a session does with each PDU that the target may send.
#include <algorithm>
#include <utility>
#include <variant>

#include "common/iscsi/errc.h"
#include "common/iscsi/pdu_codec.h"
#include "common/iscsi/pdu_rules.h"
#include "initiator/session/session.h"

namespace vjbod::initiator {

using iscsi::Errc;

void Session::on_control(const transport::ReceivedControl& received) {
  if (state_ == State::logging_in) {
    const auto* response = std::get_if<iscsi::LoginResponse>(&received.pdu);
    take_login_step(response != nullptr ? login_->on_response(*response, received.data)
                                        : login_->on_other_pdu());
    return;
  }
  if (state_ == State::terminating || state_ == State::closed) return;
  const auto header = received.header_bytes.first<iscsi::bhs_bytes>();
  if (const auto wrong = iscsi::invalid(received.pdu, iscsi::bhs_data_segment_length(header),
                                        iscsi::bhs_total_ahs_bytes(header)))
    return protocol_error("sent a header that the RFC does not allow: " + *wrong);
  if (!take_numbers(received)) return;
  std::visit([&](const auto& pdu) { on_pdu(pdu, received); }, received.pdu);
  if (window_was_closed_ && can_issue()) {
    window_was_closed_ = false;
    events_.on_window_open();
  }
}

// ExpCmdSN, MaxCmdSN and StatSN, which nearly every PDU of a target has.
bool Session::take_numbers(const transport::ReceivedControl& received) {
  struct Numbers {
    SerialNumber stat_sn, exp_cmd_sn, max_cmd_sn;
  };
  const auto numbers = std::visit(
      [](const auto& pdu) -> std::optional<Numbers> {
        if constexpr (requires { pdu.max_cmd_sn; })
          return Numbers{pdu.stat_sn, pdu.exp_cmd_sn, pdu.max_cmd_sn};
        else
          return std::nullopt;
      },
      received.pdu);
  if (!numbers) return true;  // not a target's PDU: refused by its handler
  if (!credit_.update(numbers->exp_cmd_sn, numbers->max_cmd_sn)) {
    protocol_error("acknowledged commands that were never sent");
    return false;
  }
  if (!iscsi::uses_stat_sn(received.pdu)) return true;
  if (status_.take(numbers->stat_sn) != iscsi::ExpectedStatus::Verdict::in_order) {
    abort({Errc::bad_sequence_number,
           fmt::format("{} sent StatSN {}, where {} was due.", mover_->peer(),
                       numbers->stat_sn.value, status_.exp_stat_sn().value)});
    return false;
  }
  numbers_.exp_stat_sn = status_.exp_stat_sn();
  return true;
}

void Session::on_pdu(const iscsi::NopIn& pdu, const transport::ReceivedControl& received) {
  if (pdu.itt != iscsi::reserved_tag) {
    if (pdu.itt != ping_tag_) return protocol_error("answered a NOP-Out that was never sent");
    ping_tag_ = iscsi::reserved_tag;
    unproven_answers_ = 0;  // what we sent before it was read
    return;
  }
  if (pdu.ttt == iscsi::reserved_tag) return;  // only news about the window
  if (++unproven_answers_ > unproven_answers_max)
    return protocol_error("sends pings without end and reads no answer");
  iscsi::NopOut answer;
  answer.immediate = true;
  answer.lun = pdu.lun;
  answer.ttt = pdu.ttt;
  const size_t echo =
      std::min<size_t>(received.data.size(), parameters_.peer_max_recv_data_segment_length);
  send(answer, received.data.first(echo));
  if (unproven_answers_ == unproven_answers_ask && ping_tag_ == iscsi::reserved_tag) send_ping();
}

void Session::on_pdu(const iscsi::ScsiResponse& pdu, const transport::ReceivedControl& received) {
  Slot* slot = find_slot(pdu.itt);
  if (slot == nullptr)
    return protocol_error(
        fmt::format("answered a command that is not under way (ITT {:#x})", pdu.itt));
  ChannelCommand& command = *slot->command;
  const size_t expected = command.read.size() + command.write.size();
  const uint64_t moved = command.read.empty() ? received.data_out_bytes : received.data_in_bytes;
  // RFC 7143 section 11.4.5.1
  if (pdu.overflow && pdu.underflow)
    return protocol_error("reported an overflow and an underflow of one command");
  if (pdu.underflow && pdu.residual_count > expected)
    return protocol_error(
        fmt::format("left {} of {} bytes of a command", pdu.residual_count, expected));
  if (moved > expected)
    return protocol_error(fmt::format("moved {} bytes for a command of {}", moved, expected));

  ChannelCompletion completion;
  completion.target_failure = pdu.response != 0;
  completion.status = pdu.status;
  completion.data_bytes = moved;
  completion.overflow = pdu.overflow;
  completion.underflow = pdu.underflow;
  if (pdu.overflow || pdu.underflow) completion.residual_bytes = pdu.residual_count;
  // Two bytes of length, then sense data (section 11.4.7). Never more than really came.
  if (received.data.size() >= 2) {
    const auto length = load_big_endian<uint16_t>(received.data.data());
    completion.sense = received.data.subspan(2, std::min<size_t>(length, received.data.size() - 2));
  }

  command.unlink();
  slot->command = nullptr;
  free_slots_.push_back(static_cast<uint16_t>(slot - slots_.data()));
  --commands_under_way_;
  ++commands_answered_;
  command.owner->on_command_done(command, completion);
  if (state_ == State::draining && commands_under_way_ == 0) send_logout();
}

void Session::on_pdu(const iscsi::TextResponse& pdu, const transport::ReceivedControl& received) {
  if (text_tag_ == iscsi::reserved_tag || pdu.itt != text_tag_)
    return protocol_error("sent text that nobody asked for");
  if (Status added = text_.add(received.data); !added) return abort(added.error());
  if (pdu.final) {
    if (pdu.continues) return protocol_error("sent text that is final and goes on");
    text_tag_ = iscsi::reserved_tag;
    TextDone done = std::exchange(text_done_, nullptr);
    return done(std::string(as_text(text_.text())));
  }
  if (pdu.ttt == iscsi::reserved_tag || received.data.empty())
    return protocol_error("left a text exchange open without a way to go on");
  iscsi::TextRequest more;
  more.immediate = true;
  more.final = !pdu.continues;
  more.lun = pdu.lun;
  more.itt = text_tag_;
  more.ttt = pdu.ttt;
  send(more);
}

void Session::on_pdu(const iscsi::TaskManagementResponse& pdu, const transport::ReceivedControl&) {
  if (fence_tag_ == iscsi::reserved_tag || pdu.itt != fence_tag_)
    return protocol_error("answered a task management request that was never sent");
  fence_tag_ = iscsi::reserved_tag;
  if (state_ != State::full_feature) return;  // being closed meanwhile
  deadline_.cancel();
  // A target without the function has only the reinstatement to keep order by, as every initiator
  // of it has to trust.
  if (pdu.result != iscsi::TaskManagementResult::function_complete)
    log_.info("{} does not abort what an earlier session left there (response {})", mover_->peer(),
              static_cast<unsigned>(pdu.result));
  events_.on_logged_in();
}

void Session::on_pdu(const iscsi::LogoutResponse& pdu, const transport::ReceivedControl&) {
  if (state_ != State::logging_out || pdu.itt != logout_tag_)
    return protocol_error("answered a logout that was never asked for");
  abort(close_reason_);
}

void Session::on_pdu(const iscsi::AsyncMessage& pdu, const transport::ReceivedControl&) {
  switch (pdu.event) {
    case iscsi::AsyncEvent::scsi:
      return;  // the same news stands in a unit attention of the next command
    case iscsi::AsyncEvent::logout_request:
      return close({Errc::connection_lost, fmt::format("{} asked for a logout.", mover_->peer())});
    case iscsi::AsyncEvent::negotiation_request:
      // New parameters are agreed on by a new login.
      return close(
          {Errc::connection_lost, fmt::format("{} asked for a new negotiation.", mover_->peer())});
    case iscsi::AsyncEvent::connection_dropped:
    case iscsi::AsyncEvent::session_dropped:
      return abort({Errc::connection_lost,
                    fmt::format("{} announced that it drops the session.", mover_->peer())});
    case iscsi::AsyncEvent::vendor: return;
  }
  log_.warn("{} sent an Async Message with the unknown event {}", mover_->peer(),
            static_cast<unsigned>(pdu.event));
}

void Session::on_pdu(const iscsi::Reject& pdu, const transport::ReceivedControl& received) {
  std::string_view of = "a PDU that it did not quote";
  if (received.data.size() >= iscsi::bhs_bytes)
    of = iscsi::name_of(iscsi::bhs_opcode(received.data.first<iscsi::bhs_bytes>()));
  protocol_error(
      fmt::format("rejected {} (reason {:#04x})", of, static_cast<unsigned>(pdu.reason)));
}

template <typename Other>
void Session::on_pdu(const Other& pdu, const transport::ReceivedControl&) {
  protocol_error(fmt::format("sent a {}, which must not come now",
                             iscsi::name_of(iscsi::opcode_of(iscsi::Pdu(pdu)))));
}

}  // namespace vjbod::initiator
