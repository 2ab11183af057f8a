// SPDX-License-Identifier: Apache-2.0
#include "common/scsi/cdb.h"

namespace vjbod::scsi {

namespace {

bool bit(std::byte byte, unsigned number) {
  return (std::to_integer<unsigned>(byte) >> number & 1) != 0;
}
uint8_t bits(std::byte byte, unsigned low, unsigned width) {
  return static_cast<uint8_t>(std::to_integer<unsigned>(byte) >> low & ((1U << width) - 1));
}

// Where LBA and length stand in the 10, 12 and 16-byte block commands (SBC-3 5.1).
struct Range {
  uint64_t lba = 0;
  uint32_t blocks = 0;
};
Range range_10(const std::byte* cdb) {
  return {load_big_endian<uint64_t>(cdb + 2, 4), load_big_endian<uint32_t>(cdb + 7, 2)};
}
Range range_12(const std::byte* cdb) {
  return {load_big_endian<uint64_t>(cdb + 2, 4), load_big_endian<uint32_t>(cdb + 6, 4)};
}
Range range_16(const std::byte* cdb) {
  return {load_big_endian<uint64_t>(cdb + 2, 8), load_big_endian<uint32_t>(cdb + 10, 4)};
}
// 21 bits of LBA, and 0 blocks means 256 (SBC-3 5.10).
Range range_6(const std::byte* cdb) {
  const auto blocks = std::to_integer<uint32_t>(cdb[4]);
  return {load_big_endian<uint64_t>(cdb + 1, 3) & 0x1fffff, blocks == 0 ? 256 : blocks};
}

template <typename Transfer>
Transfer transfer_6(const std::byte* cdb) {
  const Range range = range_6(cdb);
  Transfer command;
  command.size = CdbSize::six;
  command.lba = range.lba;
  command.blocks = range.blocks;
  return command;
}

template <typename Transfer>
Transfer transfer(const std::byte* cdb, CdbSize size, Range range) {
  Transfer command;
  command.size = size;
  command.protect = bits(cdb[1], 5, 3);
  command.disable_page_out = bit(cdb[1], 4);
  command.force_unit_access = bit(cdb[1], 3);
  command.lba = range.lba;
  command.blocks = range.blocks;
  return command;
}

Verify verify(const std::byte* cdb, CdbSize size, Range range) {
  return {.size = size,
          .protect = bits(cdb[1], 5, 3),
          .disable_page_out = bit(cdb[1], 4),
          .byte_check = bits(cdb[1], 1, 2),
          .lba = range.lba,
          .blocks = range.blocks};
}

SynchronizeCache synchronize_cache(const std::byte* cdb, CdbSize size, Range range) {
  return {.size = size, .immediate = bit(cdb[1], 1), .lba = range.lba, .blocks = range.blocks};
}

WriteSame write_same(const std::byte* cdb, CdbSize size, Range range) {
  return {.size = size,
          .protect = bits(cdb[1], 5, 3),
          .anchor = bit(cdb[1], 4),
          .unmap = bit(cdb[1], 3),
          .no_data_out = size == CdbSize::sixteen && bit(cdb[1], 0),
          .lba = range.lba,
          .blocks = range.blocks};
}

ModeSense mode_sense(const std::byte* cdb, CdbSize size) {
  const bool ten = size == CdbSize::ten;
  return {.size = size,
          .disable_block_descriptors = bit(cdb[1], 3),
          .page_control = bits(cdb[2], 6, 2),
          .page_code = bits(cdb[2], 0, 6),
          .subpage_code = std::to_integer<uint8_t>(cdb[3]),
          .allocation_length =
              ten ? load_big_endian<uint16_t>(cdb + 7) : std::to_integer<uint16_t>(cdb[4])};
}

StartStopUnit start_stop_unit(const std::byte* cdb) {
  return {.immediate = bit(cdb[1], 0),
          .power_condition = bits(cdb[4], 4, 4),
          .no_flush = bit(cdb[4], 2),
          .load_eject = bit(cdb[4], 1),
          .start = bit(cdb[4], 0)};
}

ReportSupportedOperationCodes report_opcodes(const std::byte* cdb) {
  return {.return_timeouts = bit(cdb[2], 7),
          .reporting_options = bits(cdb[2], 0, 3),
          .requested_opcode = std::to_integer<uint8_t>(cdb[3]),
          .requested_service_action = load_big_endian<uint16_t>(cdb + 4),
          .allocation_length = load_big_endian<uint32_t>(cdb + 6)};
}

}  // namespace

size_t cdb_bytes(std::byte opcode) {
  switch (std::to_integer<unsigned>(opcode) >> 5) {
    case 0: return 6;
    case 1:
    case 2: return 10;
    case 4: return 16;
    case 5: return 12;
    default: return 0;
  }
}

Result<Command> decode_cdb(ConstBytes bytes) {
  if (bytes.empty()) return fail(Errc::short_cdb, "a CDB of no bytes");
  const size_t length = cdb_bytes(bytes[0]);
  const auto opcode = std::to_integer<unsigned>(bytes[0]);
  if (length == 0) return fail(Errc::unknown_opcode, "operation code 0x{:02x} is unknown", opcode);
  if (bytes.size() < length) {
    return fail(Errc::short_cdb, "the CDB of operation code 0x{:02x} has {} bytes, not {}", opcode,
                bytes.size(), length);
  }
  const std::byte* cdb = bytes.data();
  switch (static_cast<Opcode>(opcode)) {
    case Opcode::test_unit_ready: return TestUnitReady{};
    case Opcode::request_sense:
      return RequestSense{bit(cdb[1], 0), std::to_integer<uint8_t>(cdb[4])};
    case Opcode::read_6: return transfer_6<Read>(cdb);
    case Opcode::write_6: return transfer_6<Write>(cdb);
    case Opcode::inquiry:
      return Inquiry{bit(cdb[1], 0), std::to_integer<uint8_t>(cdb[2]),
                     load_big_endian<uint16_t>(cdb + 3)};
    case Opcode::mode_sense_6: return mode_sense(cdb, CdbSize::six);
    case Opcode::mode_sense_10: return mode_sense(cdb, CdbSize::ten);
    case Opcode::start_stop_unit: return start_stop_unit(cdb);
    case Opcode::read_capacity_10: return ReadCapacity10{};
    case Opcode::read_10: return transfer<Read>(cdb, CdbSize::ten, range_10(cdb));
    case Opcode::read_12: return transfer<Read>(cdb, CdbSize::twelve, range_12(cdb));
    case Opcode::read_16: return transfer<Read>(cdb, CdbSize::sixteen, range_16(cdb));
    case Opcode::write_10: return transfer<Write>(cdb, CdbSize::ten, range_10(cdb));
    case Opcode::write_12: return transfer<Write>(cdb, CdbSize::twelve, range_12(cdb));
    case Opcode::write_16: return transfer<Write>(cdb, CdbSize::sixteen, range_16(cdb));
    case Opcode::verify_10: return verify(cdb, CdbSize::ten, range_10(cdb));
    case Opcode::verify_12: return verify(cdb, CdbSize::twelve, range_12(cdb));
    case Opcode::verify_16: return verify(cdb, CdbSize::sixteen, range_16(cdb));
    case Opcode::synchronize_cache_10: return synchronize_cache(cdb, CdbSize::ten, range_10(cdb));
    case Opcode::synchronize_cache_16:
      return synchronize_cache(cdb, CdbSize::sixteen, range_16(cdb));
    case Opcode::write_same_10: return write_same(cdb, CdbSize::ten, range_10(cdb));
    case Opcode::write_same_16: return write_same(cdb, CdbSize::sixteen, range_16(cdb));
    case Opcode::unmap: return Unmap{bit(cdb[1], 0), load_big_endian<uint16_t>(cdb + 7)};
    case Opcode::report_luns:
      return ReportLuns{std::to_integer<uint8_t>(cdb[2]), load_big_endian<uint32_t>(cdb + 6)};
    case Opcode::service_action_in_16:
      if (bits(cdb[1], 0, 5) == service_action_read_capacity_16) {
        return ReadCapacity16{load_big_endian<uint32_t>(cdb + 10)};
      }
      break;
    case Opcode::maintenance_in:
      if (bits(cdb[1], 0, 5) == service_action_report_opcodes) return report_opcodes(cdb);
      break;
    default: return fail(Errc::unknown_opcode, "operation code 0x{:02x} is unknown", opcode);
  }
  return fail(Errc::unknown_service_action,
              "service action 0x{:02x} of operation code 0x{:02x} is unknown", bits(cdb[1], 0, 5),
              opcode);
}

}  // namespace vjbod::scsi
