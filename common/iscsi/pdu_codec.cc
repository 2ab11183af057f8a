// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/pdu_codec.h"

#include "common/base/check.h"
#include "common/iscsi/pdu_layout.h"

namespace vjbod::iscsi {

namespace {

// In the order of the variant.
constexpr std::array opcodes = {Opcode::nop_out,
                                Opcode::scsi_command,
                                Opcode::task_management_request,
                                Opcode::login_request,
                                Opcode::text_request,
                                Opcode::data_out,
                                Opcode::logout_request,
                                Opcode::snack_request,
                                Opcode::nop_in,
                                Opcode::scsi_response,
                                Opcode::task_management_response,
                                Opcode::login_response,
                                Opcode::text_response,
                                Opcode::data_in,
                                Opcode::logout_response,
                                Opcode::r2t,
                                Opcode::async_message,
                                Opcode::reject};
static_assert(opcodes.size() == std::variant_size_v<Pdu>);

}  // namespace

Result<Pdu> decode_bhs(Bhs bhs) {
  const layout::FieldReader in(bhs);
  switch (bhs_opcode(bhs)) {
    case Opcode::nop_out: return layout::decode_nop_out(in);
    case Opcode::scsi_command: return layout::decode_scsi_command(in);
    case Opcode::task_management_request: return layout::decode_task_management_request(in);
    case Opcode::login_request: return layout::decode_login_request(in);
    case Opcode::text_request: return layout::decode_text_request(in);
    case Opcode::data_out: return layout::decode_data_out(in);
    case Opcode::logout_request: return layout::decode_logout_request(in);
    case Opcode::snack_request: return layout::decode_snack_request(in);
    case Opcode::nop_in: return layout::decode_nop_in(in);
    case Opcode::scsi_response: return layout::decode_scsi_response(in);
    case Opcode::task_management_response: return layout::decode_task_management_response(in);
    case Opcode::login_response: return layout::decode_login_response(in);
    case Opcode::text_response: return layout::decode_text_response(in);
    case Opcode::data_in: return layout::decode_data_in(in);
    case Opcode::logout_response: return layout::decode_logout_response(in);
    case Opcode::r2t: return layout::decode_r2t(in);
    case Opcode::async_message: return layout::decode_async_message(in);
    case Opcode::reject: return layout::decode_reject(in);
  }
  return fail(Errc::unknown_opcode, "opcode 0x{:02x} is not one of iSCSI's",
              static_cast<unsigned>(bhs_opcode(bhs)));
}

void encode_bhs(const Pdu& pdu, uint32_t data_segment_length, uint8_t total_ahs_length_words,
                BhsOut out) {
  VJBOD_CHECK(data_segment_length <= data_segment_length_max, "{} bytes of data",
              data_segment_length);
  std::fill(out.begin(), out.end(), std::byte{0});
  std::visit([&](const auto& p) { layout::encode(p, layout::FieldWriter(out)); }, pdu);
  out[4] = std::byte{total_ahs_length_words};
  store_big_endian(&out[5], data_segment_length, 3);
}

Opcode opcode_of(const Pdu& pdu) {
  return opcodes[pdu.index()];
}

std::string_view name_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::nop_out: return "NOP-Out";
    case Opcode::scsi_command: return "SCSI Command";
    case Opcode::task_management_request: return "Task Management Function Request";
    case Opcode::login_request: return "Login Request";
    case Opcode::text_request: return "Text Request";
    case Opcode::data_out: return "Data-Out";
    case Opcode::logout_request: return "Logout Request";
    case Opcode::snack_request: return "SNACK Request";
    case Opcode::nop_in: return "NOP-In";
    case Opcode::scsi_response: return "SCSI Response";
    case Opcode::task_management_response: return "Task Management Function Response";
    case Opcode::login_response: return "Login Response";
    case Opcode::text_response: return "Text Response";
    case Opcode::data_in: return "Data-In";
    case Opcode::logout_response: return "Logout Response";
    case Opcode::r2t: return "R2T";
    case Opcode::async_message: return "Asynchronous Message";
    case Opcode::reject: return "Reject";
  }
  return "unknown PDU";
}

bool is_known(Opcode opcode) {
  return std::find(opcodes.begin(), opcodes.end(), opcode) != opcodes.end();
}

uint32_t initiator_task_tag(const Pdu& pdu) {
  return std::visit(
      [](const auto& p) {
        if constexpr (requires { p.itt; }) {
          return p.itt;
        } else {
          return reserved_tag;
        }
      },
      pdu);
}

bool is_immediate(const Pdu& pdu) {
  return std::visit(
      [](const auto& p) {
        if constexpr (requires { p.immediate; }) {
          return p.immediate;
        } else {
          return std::is_same_v<decltype(p), const LoginRequest&>;
        }
      },
      pdu);
}

uint32_t data_segment_length(const Pdu& pdu) {
  return std::visit(
      [](const auto& p) -> uint32_t {
        if constexpr (requires { p.data_segment_length; }) {
          return p.data_segment_length;
        } else {
          return 0;
        }
      },
      pdu);
}

void stamp_target(Pdu& pdu, SerialNumber stat_sn, SerialNumber exp_cmd_sn,
                  SerialNumber max_cmd_sn) {
  std::visit(
      [&](auto& p) {
        if constexpr (requires { p.max_cmd_sn; }) {
          p.stat_sn = stat_sn;
          p.exp_cmd_sn = exp_cmd_sn;
          p.max_cmd_sn = max_cmd_sn;
        }
      },
      pdu);
}

void stamp_exp_stat_sn(Pdu& pdu, SerialNumber exp_stat_sn) {
  std::visit(
      [&](auto& p) {
        if constexpr (requires { p.exp_stat_sn; }) p.exp_stat_sn = exp_stat_sn;
      },
      pdu);
}

void stamp_cmd_sn(Pdu& pdu, SerialNumber cmd_sn) {
  std::visit(
      [&](auto& p) {
        if constexpr (requires { p.cmd_sn; }) p.cmd_sn = cmd_sn;
      },
      pdu);
}

SerialNumber command_number(const Pdu& pdu) {
  return std::visit(
      [](const auto& p) {
        if constexpr (requires { p.cmd_sn; }) {
          return p.cmd_sn;
        } else {
          return SerialNumber();
        }
      },
      pdu);
}

}  // namespace vjbod::iscsi
