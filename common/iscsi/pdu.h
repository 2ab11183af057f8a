// SPDX-License-Identifier: Apache-2.0
// Every iSCSI PDU's 48-byte basic header segment as a plain struct (RFC 7143 section 11), and the
// variant of them all. Field names are the RFC's. Data segments and AHS travel beside the header,
// never in it: `data_segment_length` is filled in by decoding and is ignored by encoding, which
// takes the length from the data it is given.
#pragma once

#include <array>
#include <cstdint>
#include <variant>

#include "common/base/bytes.h"
#include "common/base/serial_number.h"

namespace vjbod::iscsi {

inline constexpr size_t bhs_bytes = 48;
inline constexpr uint32_t reserved_tag = 0xffffffff;
inline constexpr uint32_t data_segment_length_max = 0xffffff;  // 24 bits
inline constexpr size_t cdb_bytes = 16;

enum class Opcode : uint8_t {
  nop_out = 0x00,
  scsi_command = 0x01,
  task_management_request = 0x02,
  login_request = 0x03,
  text_request = 0x04,
  data_out = 0x05,
  logout_request = 0x06,
  snack_request = 0x10,
  nop_in = 0x20,
  scsi_response = 0x21,
  task_management_response = 0x22,
  login_response = 0x23,
  text_response = 0x24,
  data_in = 0x25,
  logout_response = 0x26,
  r2t = 0x31,
  async_message = 0x32,
  reject = 0x3f,
};

// The eight LUN bytes as they are on the wire; what they mean is SCSI's business
// (common/scsi/lun.h).
using LunField = std::array<std::byte, 8>;
using Isid = std::array<std::byte, 6>;
using Cdb = std::array<std::byte, cdb_bytes>;

enum class Stage : uint8_t { security = 0, operational = 1, full_feature = 3 };
enum class TaskAttribute : uint8_t {
  untagged = 0,
  simple = 1,
  ordered = 2,
  head_of_queue = 3,
  aca = 4
};

enum class TaskManagementFunction : uint8_t {
  abort_task = 1,
  abort_task_set = 2,
  clear_aca = 3,
  clear_task_set = 4,
  logical_unit_reset = 5,
  target_warm_reset = 6,
  target_cold_reset = 7,
  task_reassign = 8,
};
enum class TaskManagementResult : uint8_t {  // RFC 7143 section 11.6.1
  function_complete = 0,
  task_does_not_exist = 1,
  lun_does_not_exist = 2,
  task_still_allegiant = 3,
  reassign_not_supported = 4,
  not_supported = 5,
  authorization_failed = 6,
  rejected = 255,
};
enum class LogoutReason : uint8_t {
  close_session = 0,
  close_connection = 1,
  remove_for_recovery = 2
};
enum class LogoutResult : uint8_t {
  success = 0,
  cid_not_found = 1,
  recovery_not_supported = 2,
  cleanup_failed = 3
};
enum class RejectReason : uint8_t {  // RFC 7143 section 11.17.1
  data_digest_error = 0x02,
  snack_reject = 0x03,
  protocol_error = 0x04,
  command_not_supported = 0x05,
  immediate_command_reject = 0x06,
  task_in_progress = 0x07,
  invalid_data_ack = 0x08,
  invalid_pdu_field = 0x09,
  long_operation_reject = 0x0a,
  waiting_for_logout = 0x0c,
};
enum class AsyncEvent : uint8_t {  // RFC 7143 section 11.9.1
  scsi = 0,
  logout_request = 1,
  connection_dropped = 2,
  session_dropped = 3,
  negotiation_request = 4,
  vendor = 255,
};

// --- sent by the initiator ---

struct NopOut {
  bool immediate = false;
  LunField lun{};
  uint32_t itt = reserved_tag;  // reserved_tag: no answer wanted
  uint32_t ttt = reserved_tag;
  SerialNumber cmd_sn{}, exp_stat_sn{};
  uint32_t data_segment_length = 0;
};

struct ScsiCommand {
  bool immediate = false;
  bool final = true;
  bool read = false;
  bool write = false;
  TaskAttribute attribute = TaskAttribute::simple;
  LunField lun{};
  uint32_t itt = 0;
  uint32_t expected_data_transfer_length = 0;  // bytes
  SerialNumber cmd_sn{}, exp_stat_sn{};
  Cdb cdb{};
  uint32_t data_segment_length = 0;  // immediate data
};

struct TaskManagementRequest {
  bool immediate = true;
  TaskManagementFunction function = TaskManagementFunction::abort_task;
  LunField lun{};
  uint32_t itt = 0;
  uint32_t referenced_task_tag = reserved_tag;
  SerialNumber cmd_sn{}, exp_stat_sn{}, ref_cmd_sn{};
  uint32_t exp_data_sn = 0;
};

struct LoginRequest {
  bool transit = false;
  bool continues = false;  // the C bit: the text goes on in the next request
  Stage current_stage = Stage::security;
  Stage next_stage = Stage::security;  // meaningful with transit
  uint8_t version_max = 0, version_min = 0;
  Isid isid{};
  uint16_t tsih = 0;
  uint32_t itt = 0;
  uint16_t cid = 0;
  SerialNumber cmd_sn{}, exp_stat_sn{};
  uint32_t data_segment_length = 0;
};

struct TextRequest {
  bool immediate = false;
  bool final = true;
  bool continues = false;
  LunField lun{};
  uint32_t itt = 0;
  uint32_t ttt = reserved_tag;
  SerialNumber cmd_sn{}, exp_stat_sn{};
  uint32_t data_segment_length = 0;
};

struct DataOut {
  bool final = false;
  LunField lun{};
  uint32_t itt = 0;
  uint32_t ttt = reserved_tag;
  SerialNumber exp_stat_sn{};
  uint32_t data_sn = 0;
  uint32_t buffer_offset = 0;
  uint32_t data_segment_length = 0;
};

struct LogoutRequest {
  bool immediate = true;
  LogoutReason reason = LogoutReason::close_session;
  uint32_t itt = 0;
  uint16_t cid = 0;
  SerialNumber cmd_sn{}, exp_stat_sn{};
};

struct SnackRequest {
  uint8_t type = 0;
  LunField lun{};
  uint32_t itt = reserved_tag;
  uint32_t ttt = reserved_tag;
  SerialNumber exp_stat_sn{};
  uint32_t begin_run = 0;
  uint32_t run_length = 0;
};

// --- sent by the target ---

struct NopIn {
  LunField lun{};
  uint32_t itt = reserved_tag;
  uint32_t ttt = reserved_tag;  // reserved_tag: no answer wanted
  SerialNumber stat_sn{}, exp_cmd_sn{}, max_cmd_sn{};
  uint32_t data_segment_length = 0;
};

struct ScsiResponse {
  bool bidirectional_read_overflow = false, bidirectional_read_underflow = false;
  bool overflow = false, underflow = false;
  uint8_t response = 0;  // 0: completed at the target, 1: target failure
  uint8_t status = 0;    // SAM status when response is 0
  uint32_t itt = 0;
  uint32_t snack_tag = 0;
  SerialNumber stat_sn{}, exp_cmd_sn{}, max_cmd_sn{};
  uint32_t exp_data_sn = 0;
  uint32_t bidirectional_read_residual_count = 0;
  uint32_t residual_count = 0;
  uint32_t data_segment_length = 0;  // two bytes of length, sense data, response data
};

struct TaskManagementResponse {
  TaskManagementResult result = TaskManagementResult::function_complete;
  uint32_t itt = 0;
  SerialNumber stat_sn{}, exp_cmd_sn{}, max_cmd_sn{};
};

struct LoginResponse {
  bool transit = false;
  bool continues = false;
  Stage current_stage = Stage::security;
  Stage next_stage = Stage::security;
  uint8_t version_max = 0, version_active = 0;
  Isid isid{};
  uint16_t tsih = 0;
  uint32_t itt = 0;
  SerialNumber stat_sn{}, exp_cmd_sn{}, max_cmd_sn{};
  uint8_t status_class = 0;
  uint8_t status_detail = 0;
  uint32_t data_segment_length = 0;
};

struct TextResponse {
  bool final = true;
  bool continues = false;
  LunField lun{};
  uint32_t itt = 0;
  uint32_t ttt = reserved_tag;
  SerialNumber stat_sn{}, exp_cmd_sn{}, max_cmd_sn{};
  uint32_t data_segment_length = 0;
};

struct DataIn {
  bool final = false;
  bool acknowledge = false;
  bool overflow = false, underflow = false;
  bool has_status = false;  // the S bit
  uint8_t status = 0;       // with has_status
  LunField lun{};
  uint32_t itt = 0;
  uint32_t ttt = reserved_tag;
  SerialNumber stat_sn{};  // with has_status
  SerialNumber exp_cmd_sn{}, max_cmd_sn{};
  uint32_t data_sn = 0;
  uint32_t buffer_offset = 0;
  uint32_t residual_count = 0;
  uint32_t data_segment_length = 0;
};

struct LogoutResponse {
  LogoutResult result = LogoutResult::success;
  uint32_t itt = 0;
  SerialNumber stat_sn{}, exp_cmd_sn{}, max_cmd_sn{};
  uint16_t time2wait_s = 0, time2retain_s = 0;
};

struct R2t {
  LunField lun{};
  uint32_t itt = 0;
  uint32_t ttt = 0;
  SerialNumber stat_sn{}, exp_cmd_sn{}, max_cmd_sn{};
  uint32_t r2t_sn = 0;
  uint32_t buffer_offset = 0;
  uint32_t desired_data_transfer_length = 0;
};

struct AsyncMessage {
  LunField lun{};
  SerialNumber stat_sn{}, exp_cmd_sn{}, max_cmd_sn{};
  AsyncEvent event = AsyncEvent::scsi;
  uint8_t vendor_code = 0;
  uint16_t parameter1 = 0, parameter2 = 0, parameter3 = 0;
  uint32_t data_segment_length = 0;
};

struct Reject {
  RejectReason reason = RejectReason::protocol_error;
  SerialNumber stat_sn{}, exp_cmd_sn{}, max_cmd_sn{};
  uint32_t data_sn = 0;
  uint32_t data_segment_length = 0;  // the header of the rejected PDU
};

using Pdu =
    std::variant<NopOut, ScsiCommand, TaskManagementRequest, LoginRequest, TextRequest, DataOut,
                 LogoutRequest, SnackRequest, NopIn, ScsiResponse, TaskManagementResponse,
                 LoginResponse, TextResponse, DataIn, LogoutResponse, R2t, AsyncMessage, Reject>;

}  // namespace vjbod::iscsi
