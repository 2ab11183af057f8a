// SPDX-License-Identifier: Apache-2.0
// The PDUs that initiators send: byte offsets as in the diagrams of RFC 7143 section 11.
#include "common/iscsi/pdu_layout.h"

namespace vjbod::iscsi::layout {

// --- NOP-Out, section 11.18 ---

NopOut decode_nop_out(const FieldReader& in) {
  return {.immediate = in.immediate(),
          .lun = in.lun(),
          .itt = in.itt(),
          .ttt = in.ttt(),
          .cmd_sn = in.cmd_sn(),
          .exp_stat_sn = in.exp_stat_sn(),
          .data_segment_length = in.data_segment_length()};
}

void encode(const NopOut& pdu, FieldWriter out) {
  out.opcode(Opcode::nop_out, pdu.immediate)
      .u8(1, 0x80)
      .lun(pdu.lun)
      .itt(pdu.itt)
      .ttt(pdu.ttt)
      .command_numbers(pdu.cmd_sn, pdu.exp_stat_sn);
}

// --- SCSI Command, section 11.3 ---

ScsiCommand decode_scsi_command(const FieldReader& in) {
  return {.immediate = in.immediate(),
          .final = in.bit(1, 0x80),
          .read = in.bit(1, 0x40),
          .write = in.bit(1, 0x20),
          .attribute = static_cast<TaskAttribute>(in.u8(1) & 0x07),
          .lun = in.lun(),
          .itt = in.itt(),
          .expected_data_transfer_length = in.u32(20),
          .cmd_sn = in.cmd_sn(),
          .exp_stat_sn = in.exp_stat_sn(),
          .cdb = in.array<cdb_bytes>(32),
          .data_segment_length = in.data_segment_length()};
}

void encode(const ScsiCommand& pdu, FieldWriter out) {
  out.opcode(Opcode::scsi_command, pdu.immediate)
      .u8(1, flag(pdu.final, 0x80) | flag(pdu.read, 0x40) | flag(pdu.write, 0x20) |
                 (number(pdu.attribute) & 0x07))
      .lun(pdu.lun)
      .itt(pdu.itt)
      .u32(20, pdu.expected_data_transfer_length)
      .command_numbers(pdu.cmd_sn, pdu.exp_stat_sn)
      .array(32, pdu.cdb);
}

// --- Task Management Function Request, section 11.5 ---

TaskManagementRequest decode_task_management_request(const FieldReader& in) {
  return {.immediate = in.immediate(),
          .function = static_cast<TaskManagementFunction>(in.u8(1) & 0x7f),
          .lun = in.lun(),
          .itt = in.itt(),
          .referenced_task_tag = in.u32(20),
          .cmd_sn = in.cmd_sn(),
          .exp_stat_sn = in.exp_stat_sn(),
          .ref_cmd_sn = in.serial(32),
          .exp_data_sn = in.u32(36)};
}

void encode(const TaskManagementRequest& pdu, FieldWriter out) {
  out.opcode(Opcode::task_management_request, pdu.immediate)
      .u8(1, 0x80 | (number(pdu.function) & 0x7f))
      .lun(pdu.lun)
      .itt(pdu.itt)
      .u32(20, pdu.referenced_task_tag)
      .command_numbers(pdu.cmd_sn, pdu.exp_stat_sn)
      .serial(32, pdu.ref_cmd_sn)
      .u32(36, pdu.exp_data_sn);
}

// --- Login Request, section 11.12 ---

LoginRequest decode_login_request(const FieldReader& in) {
  const bool transit = in.bit(1, 0x80);
  return {.transit = transit,
          .continues = in.bit(1, 0x40),
          .current_stage = static_cast<Stage>(in.u8(1) >> 2 & 0x03),
          // Reserved without the T bit.
          .next_stage = transit ? static_cast<Stage>(in.u8(1) & 0x03) : Stage::security,
          .version_max = in.u8(2),
          .version_min = in.u8(3),
          .isid = in.array<6>(8),
          .tsih = in.u16(14),
          .itt = in.itt(),
          .cid = in.u16(20),
          .cmd_sn = in.cmd_sn(),
          .exp_stat_sn = in.exp_stat_sn(),
          .data_segment_length = in.data_segment_length()};
}

void encode(const LoginRequest& pdu, FieldWriter out) {
  const unsigned next_stage = pdu.transit ? number(pdu.next_stage) & 0x03 : 0;
  out.opcode(Opcode::login_request, true)  // always immediate, section 11.12
      .u8(1, flag(pdu.transit, 0x80) | flag(pdu.continues, 0x40) |
                 (number(pdu.current_stage) & 0x03) << 2 | next_stage)
      .u8(2, pdu.version_max)
      .u8(3, pdu.version_min)
      .array(8, pdu.isid)
      .u16(14, pdu.tsih)
      .itt(pdu.itt)
      .u16(20, pdu.cid)
      .command_numbers(pdu.cmd_sn, pdu.exp_stat_sn);
}

// --- Text Request, section 11.10 ---

TextRequest decode_text_request(const FieldReader& in) {
  return {.immediate = in.immediate(),
          .final = in.bit(1, 0x80),
          .continues = in.bit(1, 0x40),
          .lun = in.lun(),
          .itt = in.itt(),
          .ttt = in.ttt(),
          .cmd_sn = in.cmd_sn(),
          .exp_stat_sn = in.exp_stat_sn(),
          .data_segment_length = in.data_segment_length()};
}

void encode(const TextRequest& pdu, FieldWriter out) {
  out.opcode(Opcode::text_request, pdu.immediate)
      .u8(1, flag(pdu.final, 0x80) | flag(pdu.continues, 0x40))
      .lun(pdu.lun)
      .itt(pdu.itt)
      .ttt(pdu.ttt)
      .command_numbers(pdu.cmd_sn, pdu.exp_stat_sn);
}

// --- SCSI Data-Out, section 11.7 ---

DataOut decode_data_out(const FieldReader& in) {
  return {.final = in.bit(1, 0x80),
          .lun = in.lun(),
          .itt = in.itt(),
          .ttt = in.ttt(),
          .exp_stat_sn = in.exp_stat_sn(),
          .data_sn = in.u32(36),
          .buffer_offset = in.u32(40),
          .data_segment_length = in.data_segment_length()};
}

void encode(const DataOut& pdu, FieldWriter out) {
  out.opcode(Opcode::data_out)
      .u8(1, flag(pdu.final, 0x80))
      .lun(pdu.lun)
      .itt(pdu.itt)
      .ttt(pdu.ttt)
      .serial(28, pdu.exp_stat_sn)
      .u32(36, pdu.data_sn)
      .u32(40, pdu.buffer_offset);
}

// --- Logout Request, section 11.14 ---

LogoutRequest decode_logout_request(const FieldReader& in) {
  return {.immediate = in.immediate(),
          .reason = static_cast<LogoutReason>(in.u8(1) & 0x7f),
          .itt = in.itt(),
          .cid = in.u16(20),
          .cmd_sn = in.cmd_sn(),
          .exp_stat_sn = in.exp_stat_sn()};
}

void encode(const LogoutRequest& pdu, FieldWriter out) {
  out.opcode(Opcode::logout_request, pdu.immediate)
      .u8(1, 0x80 | (number(pdu.reason) & 0x7f))
      .itt(pdu.itt)
      .u16(20, pdu.cid)
      .command_numbers(pdu.cmd_sn, pdu.exp_stat_sn);
}

// --- SNACK Request, section 11.16 ---

SnackRequest decode_snack_request(const FieldReader& in) {
  return {.type = static_cast<uint8_t>(in.u8(1) & 0x0f),
          .lun = in.lun(),
          .itt = in.itt(),
          .ttt = in.ttt(),
          .exp_stat_sn = in.exp_stat_sn(),
          .begin_run = in.u32(40),
          .run_length = in.u32(44)};
}

void encode(const SnackRequest& pdu, FieldWriter out) {
  out.opcode(Opcode::snack_request)
      .u8(1, 0x80 | (pdu.type & 0x0fU))
      .lun(pdu.lun)
      .itt(pdu.itt)
      .ttt(pdu.ttt)
      .serial(28, pdu.exp_stat_sn)
      .u32(40, pdu.begin_run)
      .u32(44, pdu.run_length);
}

}  // namespace vjbod::iscsi::layout
