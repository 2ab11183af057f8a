// SPDX-License-Identifier: Apache-2.0
// The PDUs that targets send: byte offsets as in the diagrams of RFC 7143 section 11.
#include "common/iscsi/pdu_layout.h"

namespace vjbod::iscsi::layout {

// --- NOP-In, section 11.19 ---

NopIn decode_nop_in(const FieldReader& in) {
  return {.lun = in.lun(),
          .itt = in.itt(),
          .ttt = in.ttt(),
          .stat_sn = in.stat_sn(),
          .exp_cmd_sn = in.exp_cmd_sn(),
          .max_cmd_sn = in.max_cmd_sn(),
          .data_segment_length = in.data_segment_length()};
}

void encode(const NopIn& pdu, FieldWriter out) {
  out.opcode(Opcode::nop_in).u8(1, 0x80).lun(pdu.lun).itt(pdu.itt).ttt(pdu.ttt).target_numbers(pdu);
}

// --- SCSI Response, section 11.4 ---

ScsiResponse decode_scsi_response(const FieldReader& in) {
  return {.bidirectional_read_overflow = in.bit(1, 0x10),
          .bidirectional_read_underflow = in.bit(1, 0x08),
          .overflow = in.bit(1, 0x04),
          .underflow = in.bit(1, 0x02),
          .response = in.u8(2),
          .status = in.u8(3),
          .itt = in.itt(),
          .snack_tag = in.u32(20),
          .stat_sn = in.stat_sn(),
          .exp_cmd_sn = in.exp_cmd_sn(),
          .max_cmd_sn = in.max_cmd_sn(),
          .exp_data_sn = in.u32(36),
          .bidirectional_read_residual_count = in.u32(40),
          .residual_count = in.u32(44),
          .data_segment_length = in.data_segment_length()};
}

void encode(const ScsiResponse& pdu, FieldWriter out) {
  out.opcode(Opcode::scsi_response)
      .u8(1, 0x80 | flag(pdu.bidirectional_read_overflow, 0x10) |
                 flag(pdu.bidirectional_read_underflow, 0x08) | flag(pdu.overflow, 0x04) |
                 flag(pdu.underflow, 0x02))
      .u8(2, pdu.response)
      .u8(3, pdu.status)
      .itt(pdu.itt)
      .u32(20, pdu.snack_tag)
      .target_numbers(pdu)
      .u32(36, pdu.exp_data_sn)
      .u32(40, pdu.bidirectional_read_residual_count)
      .u32(44, pdu.residual_count);
}

// --- Task Management Function Response, section 11.6 ---

TaskManagementResponse decode_task_management_response(const FieldReader& in) {
  return {.result = static_cast<TaskManagementResult>(in.u8(2)),
          .itt = in.itt(),
          .stat_sn = in.stat_sn(),
          .exp_cmd_sn = in.exp_cmd_sn(),
          .max_cmd_sn = in.max_cmd_sn()};
}

void encode(const TaskManagementResponse& pdu, FieldWriter out) {
  out.opcode(Opcode::task_management_response)
      .u8(1, 0x80)
      .u8(2, number(pdu.result))
      .itt(pdu.itt)
      .target_numbers(pdu);
}

// --- Login Response, section 11.13 ---

LoginResponse decode_login_response(const FieldReader& in) {
  const bool transit = in.bit(1, 0x80);
  return {.transit = transit,
          .continues = in.bit(1, 0x40),
          .current_stage = static_cast<Stage>(in.u8(1) >> 2 & 0x03),
          // Reserved without the T bit.
          .next_stage = transit ? static_cast<Stage>(in.u8(1) & 0x03) : Stage::security,
          .version_max = in.u8(2),
          .version_active = in.u8(3),
          .isid = in.array<6>(8),
          .tsih = in.u16(14),
          .itt = in.itt(),
          .stat_sn = in.stat_sn(),
          .exp_cmd_sn = in.exp_cmd_sn(),
          .max_cmd_sn = in.max_cmd_sn(),
          .status_class = in.u8(36),
          .status_detail = in.u8(37),
          .data_segment_length = in.data_segment_length()};
}

void encode(const LoginResponse& pdu, FieldWriter out) {
  const unsigned next_stage = pdu.transit ? number(pdu.next_stage) & 0x03 : 0;
  out.opcode(Opcode::login_response)
      .u8(1, flag(pdu.transit, 0x80) | flag(pdu.continues, 0x40) |
                 (number(pdu.current_stage) & 0x03) << 2 | next_stage)
      .u8(2, pdu.version_max)
      .u8(3, pdu.version_active)
      .array(8, pdu.isid)
      .u16(14, pdu.tsih)
      .itt(pdu.itt)
      .target_numbers(pdu)
      .u8(36, pdu.status_class)
      .u8(37, pdu.status_detail);
}

// --- Text Response, section 11.11 ---

TextResponse decode_text_response(const FieldReader& in) {
  return {.final = in.bit(1, 0x80),
          .continues = in.bit(1, 0x40),
          .lun = in.lun(),
          .itt = in.itt(),
          .ttt = in.ttt(),
          .stat_sn = in.stat_sn(),
          .exp_cmd_sn = in.exp_cmd_sn(),
          .max_cmd_sn = in.max_cmd_sn(),
          .data_segment_length = in.data_segment_length()};
}

void encode(const TextResponse& pdu, FieldWriter out) {
  out.opcode(Opcode::text_response)
      .u8(1, flag(pdu.final, 0x80) | flag(pdu.continues, 0x40))
      .lun(pdu.lun)
      .itt(pdu.itt)
      .ttt(pdu.ttt)
      .target_numbers(pdu);
}

// --- SCSI Data-In, section 11.7 ---

DataIn decode_data_in(const FieldReader& in) {
  DataIn pdu;
  pdu.final = in.bit(1, 0x80);
  pdu.acknowledge = in.bit(1, 0x40);
  pdu.has_status = in.bit(1, 0x01);
  pdu.lun = in.lun();
  pdu.itt = in.itt();
  pdu.ttt = in.ttt();
  pdu.exp_cmd_sn = in.exp_cmd_sn();
  pdu.max_cmd_sn = in.max_cmd_sn();
  pdu.data_sn = in.u32(36);
  pdu.buffer_offset = in.u32(40);
  pdu.data_segment_length = in.data_segment_length();
  if (pdu.has_status) {  // without content otherwise, section 11.7.1
    pdu.overflow = in.bit(1, 0x04);
    pdu.underflow = in.bit(1, 0x02);
    pdu.status = in.u8(3);
    pdu.stat_sn = in.stat_sn();
    pdu.residual_count = in.u32(44);
  }
  return pdu;
}

void encode(const DataIn& pdu, FieldWriter out) {
  out.opcode(Opcode::data_in)
      .u8(1, flag(pdu.final, 0x80) | flag(pdu.acknowledge, 0x40))
      .lun(pdu.lun)
      .itt(pdu.itt)
      .ttt(pdu.ttt)
      .serial(28, pdu.exp_cmd_sn)
      .serial(32, pdu.max_cmd_sn)
      .u32(36, pdu.data_sn)
      .u32(40, pdu.buffer_offset);
  if (pdu.has_status) {
    out.u8(1, flag(pdu.final, 0x80) | flag(pdu.acknowledge, 0x40) | flag(pdu.overflow, 0x04) |
                  flag(pdu.underflow, 0x02) | 0x01)
        .u8(3, pdu.status)
        .serial(24, pdu.stat_sn)
        .u32(44, pdu.residual_count);
  }
}

// --- Logout Response, section 11.15 ---

LogoutResponse decode_logout_response(const FieldReader& in) {
  return {.result = static_cast<LogoutResult>(in.u8(2)),
          .itt = in.itt(),
          .stat_sn = in.stat_sn(),
          .exp_cmd_sn = in.exp_cmd_sn(),
          .max_cmd_sn = in.max_cmd_sn(),
          .time2wait_s = in.u16(40),
          .time2retain_s = in.u16(42)};
}

void encode(const LogoutResponse& pdu, FieldWriter out) {
  out.opcode(Opcode::logout_response)
      .u8(1, 0x80)
      .u8(2, number(pdu.result))
      .itt(pdu.itt)
      .target_numbers(pdu)
      .u16(40, pdu.time2wait_s)
      .u16(42, pdu.time2retain_s);
}

// --- Ready To Transfer, section 11.8 ---

R2t decode_r2t(const FieldReader& in) {
  return {.lun = in.lun(),
          .itt = in.itt(),
          .ttt = in.ttt(),
          .stat_sn = in.stat_sn(),
          .exp_cmd_sn = in.exp_cmd_sn(),
          .max_cmd_sn = in.max_cmd_sn(),
          .r2t_sn = in.u32(36),
          .buffer_offset = in.u32(40),
          .desired_data_transfer_length = in.u32(44)};
}

void encode(const R2t& pdu, FieldWriter out) {
  out.opcode(Opcode::r2t)
      .u8(1, 0x80)
      .lun(pdu.lun)
      .itt(pdu.itt)
      .ttt(pdu.ttt)
      .target_numbers(pdu)
      .u32(36, pdu.r2t_sn)
      .u32(40, pdu.buffer_offset)
      .u32(44, pdu.desired_data_transfer_length);
}

// --- Asynchronous Message, section 11.9 ---

AsyncMessage decode_async_message(const FieldReader& in) {
  return {.lun = in.lun(),
          .stat_sn = in.stat_sn(),
          .exp_cmd_sn = in.exp_cmd_sn(),
          .max_cmd_sn = in.max_cmd_sn(),
          .event = static_cast<AsyncEvent>(in.u8(36)),
          .vendor_code = in.u8(37),
          .parameter1 = in.u16(38),
          .parameter2 = in.u16(40),
          .parameter3 = in.u16(42),
          .data_segment_length = in.data_segment_length()};
}

void encode(const AsyncMessage& pdu, FieldWriter out) {
  out.opcode(Opcode::async_message)
      .u8(1, 0x80)
      .lun(pdu.lun)
      .itt(reserved_tag)
      .target_numbers(pdu)
      .u8(36, number(pdu.event))
      .u8(37, pdu.vendor_code)
      .u16(38, pdu.parameter1)
      .u16(40, pdu.parameter2)
      .u16(42, pdu.parameter3);
}

// --- Reject, section 11.17 ---

Reject decode_reject(const FieldReader& in) {
  return {.reason = static_cast<RejectReason>(in.u8(2)),
          .stat_sn = in.stat_sn(),
          .exp_cmd_sn = in.exp_cmd_sn(),
          .max_cmd_sn = in.max_cmd_sn(),
          .data_sn = in.u32(36),
          .data_segment_length = in.data_segment_length()};
}

void encode(const Reject& pdu, FieldWriter out) {
  out.opcode(Opcode::reject)
      .u8(1, 0x80)
      .u8(2, number(pdu.reason))
      .itt(reserved_tag)
      .target_numbers(pdu)
      .u32(36, pdu.data_sn);
}

}  // namespace vjbod::iscsi::layout
