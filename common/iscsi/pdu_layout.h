// SPDX-License-Identifier: Apache-2.0
// Inside the codec only: fields by their byte offset in the header, as the RFC's diagrams number
// them, and the functions of the two files that hold the layouts.
#pragma once

#include <algorithm>

#include "common/iscsi/pdu_codec.h"

namespace vjbod::iscsi::layout {

class FieldReader {
 public:
  explicit FieldReader(Bhs bhs) : bytes_(bhs) {}

  uint8_t u8(size_t at) const { return std::to_integer<uint8_t>(bytes_[at]); }
  bool bit(size_t at, uint8_t mask) const { return (u8(at) & mask) != 0; }
  uint16_t u16(size_t at) const { return load_big_endian<uint16_t>(&bytes_[at]); }
  uint32_t u32(size_t at) const { return load_big_endian<uint32_t>(&bytes_[at]); }
  SerialNumber serial(size_t at) const { return SerialNumber(u32(at)); }
  template <size_t count>
  std::array<std::byte, count> array(size_t at) const {
    std::array<std::byte, count> out;
    std::copy_n(&bytes_[at], count, out.begin());
    return out;
  }
  // The same in every PDU.
  bool immediate() const { return bhs_immediate(bytes_); }
  uint32_t data_segment_length() const { return bhs_data_segment_length(bytes_); }
  LunField lun() const { return array<8>(8); }
  uint32_t itt() const { return u32(16); }
  uint32_t ttt() const { return u32(20); }
  // The same in every PDU from an initiator that has it, and in every PDU from a target.
  SerialNumber cmd_sn() const { return serial(24); }
  SerialNumber exp_stat_sn() const { return serial(28); }
  SerialNumber stat_sn() const { return serial(24); }
  SerialNumber exp_cmd_sn() const { return serial(28); }
  SerialNumber max_cmd_sn() const { return serial(32); }

 private:
  Bhs bytes_;
};

// Starts from all zero, so that what a PDU does not set is reserved and right.
class FieldWriter {
 public:
  explicit FieldWriter(BhsOut out) : bytes_(out) {}

  FieldWriter& u8(size_t at, unsigned value) {
    bytes_[at] = static_cast<std::byte>(value);
    return *this;
  }
  FieldWriter& u16(size_t at, uint16_t value) {
    store_big_endian(&bytes_[at], value);
    return *this;
  }
  FieldWriter& u32(size_t at, uint32_t value) {
    store_big_endian(&bytes_[at], value);
    return *this;
  }
  FieldWriter& serial(size_t at, SerialNumber value) { return u32(at, value.value); }
  template <size_t count>
  FieldWriter& array(size_t at, const std::array<std::byte, count>& value) {
    std::copy_n(value.begin(), count, &bytes_[at]);
    return *this;
  }
  FieldWriter& opcode(Opcode opcode, bool immediate = false) {
    return u8(0, static_cast<unsigned>(opcode) | (immediate ? 0x40U : 0U));
  }
  FieldWriter& lun(const LunField& value) { return array(8, value); }
  FieldWriter& itt(uint32_t value) { return u32(16, value); }
  FieldWriter& ttt(uint32_t value) { return u32(20, value); }
  FieldWriter& command_numbers(SerialNumber cmd_sn, SerialNumber exp_stat_sn) {
    return serial(24, cmd_sn).serial(28, exp_stat_sn);
  }
  template <typename TargetPdu>
  FieldWriter& target_numbers(const TargetPdu& pdu) {
    return serial(24, pdu.stat_sn).serial(28, pdu.exp_cmd_sn).serial(32, pdu.max_cmd_sn);
  }

 private:
  BhsOut bytes_;
};

constexpr unsigned flag(bool set, unsigned mask) {
  return set ? mask : 0;
}
template <typename Enum>
constexpr unsigned number(Enum value) {
  return static_cast<unsigned>(value);
}

// pdu_codec_initiator.cc
NopOut decode_nop_out(const FieldReader& in);
void encode(const NopOut& pdu, FieldWriter out);
ScsiCommand decode_scsi_command(const FieldReader& in);
void encode(const ScsiCommand& pdu, FieldWriter out);
TaskManagementRequest decode_task_management_request(const FieldReader& in);
void encode(const TaskManagementRequest& pdu, FieldWriter out);
LoginRequest decode_login_request(const FieldReader& in);
void encode(const LoginRequest& pdu, FieldWriter out);
TextRequest decode_text_request(const FieldReader& in);
void encode(const TextRequest& pdu, FieldWriter out);
DataOut decode_data_out(const FieldReader& in);
void encode(const DataOut& pdu, FieldWriter out);
LogoutRequest decode_logout_request(const FieldReader& in);
void encode(const LogoutRequest& pdu, FieldWriter out);
SnackRequest decode_snack_request(const FieldReader& in);
void encode(const SnackRequest& pdu, FieldWriter out);

// pdu_codec_target.cc
NopIn decode_nop_in(const FieldReader& in);
void encode(const NopIn& pdu, FieldWriter out);
ScsiResponse decode_scsi_response(const FieldReader& in);
void encode(const ScsiResponse& pdu, FieldWriter out);
TaskManagementResponse decode_task_management_response(const FieldReader& in);
void encode(const TaskManagementResponse& pdu, FieldWriter out);
LoginResponse decode_login_response(const FieldReader& in);
void encode(const LoginResponse& pdu, FieldWriter out);
TextResponse decode_text_response(const FieldReader& in);
void encode(const TextResponse& pdu, FieldWriter out);
DataIn decode_data_in(const FieldReader& in);
void encode(const DataIn& pdu, FieldWriter out);
LogoutResponse decode_logout_response(const FieldReader& in);
void encode(const LogoutResponse& pdu, FieldWriter out);
R2t decode_r2t(const FieldReader& in);
void encode(const R2t& pdu, FieldWriter out);
AsyncMessage decode_async_message(const FieldReader& in);
void encode(const AsyncMessage& pdu, FieldWriter out);
Reject decode_reject(const FieldReader& in);
void encode(const Reject& pdu, FieldWriter out);

}  // namespace vjbod::iscsi::layout
