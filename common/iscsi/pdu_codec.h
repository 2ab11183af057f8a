// SPDX-License-Identifier: Apache-2.0
// The 48 bytes of a basic header segment to and from the structs of pdu.h (RFC 7143 section 11).
// Pure; any thread. Reserved bits and fields are ignored on receipt and zero on sending.
// Decoding says nothing about meaning: a field with a value that the RFC does not define comes
// through as it is (an enumeration may then hold a value without a name); pdu_rules.h judges it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/base/result.h"
#include "common/iscsi/errc.h"
#include "common/iscsi/pdu.h"

namespace vjbod::iscsi {

using Bhs = std::span<const std::byte, bhs_bytes>;
using BhsOut = std::span<std::byte, bhs_bytes>;

// AHS are counted in 4-byte words in one byte.
inline constexpr size_t total_ahs_bytes_max = 255 * 4;

// Errc::unknown_opcode is the only error.
Result<Pdu> decode_bhs(Bhs bhs);
// Writes all 48 bytes. data_segment_length <= data_segment_length_max.
void encode_bhs(const Pdu& pdu, uint32_t data_segment_length, uint8_t total_ahs_length_words,
                BhsOut out);

// Fields that stand at the same place in every header, also of one that cannot be decoded.
inline Opcode bhs_opcode(Bhs bhs) {  // may be a value without a name
  return static_cast<Opcode>(std::to_integer<uint8_t>(bhs[0]) & 0x3f);
}
inline bool bhs_immediate(Bhs bhs) {
  return (std::to_integer<uint8_t>(bhs[0]) & 0x40) != 0;
}
inline size_t bhs_total_ahs_bytes(Bhs bhs) {
  return std::to_integer<size_t>(bhs[4]) * 4;
}
inline uint32_t bhs_data_segment_length(Bhs bhs) {
  return load_big_endian<uint32_t>(bhs.data() + 5, 3);
}
inline uint32_t bhs_itt(Bhs bhs) {
  return load_big_endian<uint32_t>(bhs.data() + 16);
}

Opcode opcode_of(const Pdu& pdu);
std::string_view name_of(
    Opcode opcode);  // "SCSI Command"; "unknown PDU" for a value without a name
bool is_known(Opcode opcode);
// RFC 7143 section 11.2.1.2: initiator opcodes are 0x00 to 0x1f.
inline bool is_from_initiator(Opcode opcode) {
  return static_cast<uint8_t>(opcode) < 0x20;
}
inline bool is_from_initiator(const Pdu& pdu) {
  return is_from_initiator(opcode_of(pdu));
}

// Fields that many PDUs have; where a PDU lacks one, the value says so.
uint32_t initiator_task_tag(const Pdu& pdu);   // reserved_tag in Async Message and Reject
bool is_immediate(const Pdu& pdu);             // the I bit; true for Login Request
uint32_t data_segment_length(const Pdu& pdu);  // as decoded; 0 where the PDU can have no data

// CmdSN of a PDU from an initiator; zero where the PDU has none.
SerialNumber command_number(const Pdu& pdu);

// The sender's stamps. Each sets the fields that the PDU has, and nothing in one that lacks them.
// (StatSN of a Data-In only with status; the caller advances StatSN by the rules of
// status_sequence.h.)
void stamp_target(Pdu& pdu, SerialNumber stat_sn, SerialNumber exp_cmd_sn, SerialNumber max_cmd_sn);
void stamp_exp_stat_sn(Pdu& pdu, SerialNumber exp_stat_sn);
void stamp_cmd_sn(Pdu& pdu, SerialNumber cmd_sn);

}  // namespace vjbod::iscsi
