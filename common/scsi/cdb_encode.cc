// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "common/base/check.h"
#include "common/scsi/cdb.h"

namespace vjbod::scsi {

namespace {

Cdb begin(Opcode opcode) {
  Cdb cdb{};
  cdb[0] = static_cast<std::byte>(opcode);
  return cdb;
}

std::byte flag(bool set, unsigned bit) {
  return set ? static_cast<std::byte>(1U << bit) : std::byte{0};
}
std::byte field(uint8_t value, unsigned low, unsigned width) {
  VJBOD_CHECK(value < 1U << width, "{} does not fit {} bits of a CDB", value, width);
  return static_cast<std::byte>(value << low);
}

Opcode by_size(CdbSize size, Opcode ten, Opcode twelve, Opcode sixteen) {
  switch (size) {
    case CdbSize::ten: return ten;
    case CdbSize::twelve: return twelve;
    case CdbSize::sixteen: return sixteen;
    case CdbSize::six: break;
  }
  VJBOD_CHECK(false, "no such command with a six-byte CDB");
  return ten;
}

void put_range(Cdb& cdb, CdbSize size, uint64_t lba, uint32_t blocks) {
  if (size == CdbSize::sixteen) {
    store_big_endian(&cdb[2], lba);
    store_big_endian(&cdb[10], blocks);
    return;
  }
  VJBOD_CHECK(lba <= std::numeric_limits<uint32_t>::max(), "LBA {} needs a 16-byte CDB", lba);
  store_big_endian(&cdb[2], static_cast<uint32_t>(lba));
  if (size == CdbSize::twelve) {
    store_big_endian(&cdb[6], blocks);
    return;
  }
  VJBOD_CHECK(blocks <= std::numeric_limits<uint16_t>::max(), "{} blocks need a longer CDB",
              blocks);
  store_big_endian(&cdb[7], static_cast<uint16_t>(blocks));
}

template <typename Transfer>
Cdb encode_transfer(const Transfer& command, Opcode six, Opcode ten, Opcode twelve,
                    Opcode sixteen) {
  if (command.size == CdbSize::six) {
    VJBOD_CHECK(command.lba <= 0x1fffff && command.blocks >= 1 && command.blocks <= 256 &&
                    command.protect == 0 && !command.disable_page_out && !command.force_unit_access,
                "the transfer does not fit a six-byte CDB");
    Cdb cdb = begin(six);
    store_big_endian(&cdb[1], static_cast<uint32_t>(command.lba), 3);
    cdb[4] = static_cast<std::byte>(command.blocks & 0xff);
    return cdb;
  }
  Cdb cdb = begin(by_size(command.size, ten, twelve, sixteen));
  cdb[1] = field(command.protect, 5, 3) | flag(command.disable_page_out, 4) |
           flag(command.force_unit_access, 3);
  put_range(cdb, command.size, command.lba, command.blocks);
  return cdb;
}

}  // namespace

CdbSize smallest_cdb(uint64_t lba, uint32_t blocks) {
  const bool ten =
      blocks <= std::numeric_limits<uint16_t>::max() && lba <= std::numeric_limits<uint32_t>::max();
  return ten ? CdbSize::ten : CdbSize::sixteen;
}

Cdb encode(const TestUnitReady&) {
  return begin(Opcode::test_unit_ready);
}

Cdb encode(const RequestSense& command) {
  Cdb cdb = begin(Opcode::request_sense);
  cdb[1] = flag(command.descriptor_format, 0);
  cdb[4] = static_cast<std::byte>(command.allocation_length);
  return cdb;
}

Cdb encode(const Inquiry& command) {
  Cdb cdb = begin(Opcode::inquiry);
  cdb[1] = flag(command.vital_product_data, 0);
  cdb[2] = static_cast<std::byte>(command.page_code);
  store_big_endian(&cdb[3], command.allocation_length);
  return cdb;
}

Cdb encode(const ModeSense& command) {
  const bool ten = command.size == CdbSize::ten;
  VJBOD_CHECK(ten || command.size == CdbSize::six, "MODE SENSE has six or ten bytes");
  Cdb cdb = begin(ten ? Opcode::mode_sense_10 : Opcode::mode_sense_6);
  cdb[1] = flag(command.disable_block_descriptors, 3);
  cdb[2] = field(command.page_control, 6, 2) | field(command.page_code, 0, 6);
  cdb[3] = static_cast<std::byte>(command.subpage_code);
  if (ten) {
    store_big_endian(&cdb[7], command.allocation_length);
  } else {
    VJBOD_CHECK(command.allocation_length <= 255, "MODE SENSE(6) returns at most 255 bytes");
    cdb[4] = static_cast<std::byte>(command.allocation_length);
  }
  return cdb;
}

Cdb encode(const StartStopUnit& command) {
  Cdb cdb = begin(Opcode::start_stop_unit);
  cdb[1] = flag(command.immediate, 0);
  cdb[4] = field(command.power_condition, 4, 4) | flag(command.no_flush, 2) |
           flag(command.load_eject, 1) | flag(command.start, 0);
  return cdb;
}

Cdb encode(const ReadCapacity10&) {
  return begin(Opcode::read_capacity_10);
}

Cdb encode(const ReadCapacity16& command) {
  Cdb cdb = begin(Opcode::service_action_in_16);
  cdb[1] = static_cast<std::byte>(service_action_read_capacity_16);
  store_big_endian(&cdb[10], command.allocation_length);
  return cdb;
}

Cdb encode(const ReportLuns& command) {
  Cdb cdb = begin(Opcode::report_luns);
  cdb[2] = static_cast<std::byte>(command.select_report);
  store_big_endian(&cdb[6], command.allocation_length);
  return cdb;
}

Cdb encode(const ReportSupportedOperationCodes& command) {
  Cdb cdb = begin(Opcode::maintenance_in);
  cdb[1] = static_cast<std::byte>(service_action_report_opcodes);
  cdb[2] = flag(command.return_timeouts, 7) | field(command.reporting_options, 0, 3);
  cdb[3] = static_cast<std::byte>(command.requested_opcode);
  store_big_endian(&cdb[4], command.requested_service_action);
  store_big_endian(&cdb[6], command.allocation_length);
  return cdb;
}

Cdb encode(const Read& command) {
  return encode_transfer(command, Opcode::read_6, Opcode::read_10, Opcode::read_12,
                         Opcode::read_16);
}

Cdb encode(const Write& command) {
  return encode_transfer(command, Opcode::write_6, Opcode::write_10, Opcode::write_12,
                         Opcode::write_16);
}

Cdb encode(const Verify& command) {
  Cdb cdb = begin(by_size(command.size, Opcode::verify_10, Opcode::verify_12, Opcode::verify_16));
  cdb[1] = field(command.protect, 5, 3) | flag(command.disable_page_out, 4) |
           field(command.byte_check, 1, 2);
  put_range(cdb, command.size, command.lba, command.blocks);
  return cdb;
}

Cdb encode(const SynchronizeCache& command) {
  VJBOD_CHECK(command.size == CdbSize::ten || command.size == CdbSize::sixteen);
  Cdb cdb = begin(command.size == CdbSize::ten ? Opcode::synchronize_cache_10
                                               : Opcode::synchronize_cache_16);
  cdb[1] = flag(command.immediate, 1);
  put_range(cdb, command.size, command.lba, command.blocks);
  return cdb;
}

Cdb encode(const WriteSame& command) {
  const bool ten = command.size == CdbSize::ten;
  VJBOD_CHECK(ten || command.size == CdbSize::sixteen);
  VJBOD_CHECK(!ten || !command.no_data_out, "WRITE SAME(10) has no NDOB bit");
  Cdb cdb = begin(ten ? Opcode::write_same_10 : Opcode::write_same_16);
  cdb[1] = field(command.protect, 5, 3) | flag(command.anchor, 4) | flag(command.unmap, 3) |
           flag(command.no_data_out, 0);
  put_range(cdb, command.size, command.lba, command.blocks);
  return cdb;
}

Cdb encode(const Unmap& command) {
  Cdb cdb = begin(Opcode::unmap);
  cdb[1] = flag(command.anchor, 0);
  store_big_endian(&cdb[7], command.parameter_list_length);
  return cdb;
}

}  // namespace vjbod::scsi
