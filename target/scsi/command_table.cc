// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/command_table.h"

#include "target/scsi/block_commands.h"
#include "target/scsi/primary_commands.h"
#include "target/scsi/report_opcodes.h"

namespace vjbod::scsi {

namespace {

constexpr uint32_t quick = 10;
constexpr uint32_t transfer = 30;
constexpr uint32_t long_running = 120;  // flushes, and what walks over a large range

// The byte with the CONTROL field: we look at its NACA bit.
constexpr uint8_t control = 0x04;

// clang-format off
constexpr CommandEntry table[] = {
    {.opcode = Opcode::test_unit_ready, .service_action = {}, .name = "TEST UNIT READY", .cdb_bytes = 6,
     .usage = {0x00, 0, 0, 0, 0, control},
     .during_unit_attention = false, .without_unit = false, .writes = false, .needs_unmap = false,
     .timeout_seconds = quick, .begin = begin_test_unit_ready},
    {.opcode = Opcode::request_sense, .service_action = {}, .name = "REQUEST SENSE", .cdb_bytes = 6,
     .usage = {0x03, 0x01, 0, 0, 0xff, control},
     .during_unit_attention = true, .without_unit = true, .writes = false, .needs_unmap = false,
     .timeout_seconds = quick, .begin = begin_request_sense},
    {.opcode = Opcode::read_6, .service_action = {}, .name = "READ(6)", .cdb_bytes = 6,
     .usage = {0x08, 0x1f, 0xff, 0xff, 0xff, control},
     .during_unit_attention = false, .without_unit = false, .writes = false, .needs_unmap = false,
     .timeout_seconds = transfer, .begin = begin_read},
    {.opcode = Opcode::write_6, .service_action = {}, .name = "WRITE(6)", .cdb_bytes = 6,
     .usage = {0x0a, 0x1f, 0xff, 0xff, 0xff, control},
     .during_unit_attention = false, .without_unit = false, .writes = true, .needs_unmap = false,
     .timeout_seconds = transfer, .begin = begin_write},
    {.opcode = Opcode::inquiry, .service_action = {}, .name = "INQUIRY", .cdb_bytes = 6,
     .usage = {0x12, 0x01, 0xff, 0xff, 0xff, control},
     .during_unit_attention = true, .without_unit = true, .writes = false, .needs_unmap = false,
     .timeout_seconds = quick, .begin = begin_inquiry},
    {.opcode = Opcode::mode_sense_6, .service_action = {}, .name = "MODE SENSE(6)", .cdb_bytes = 6,
     .usage = {0x1a, 0x08, 0xff, 0xff, 0xff, control},
     .during_unit_attention = false, .without_unit = false, .writes = false, .needs_unmap = false,
     .timeout_seconds = quick, .begin = begin_mode_sense},
    {.opcode = Opcode::start_stop_unit, .service_action = {}, .name = "START STOP UNIT", .cdb_bytes = 6,
     .usage = {0x1b, 0x01, 0, 0, 0xf7, control},
     .during_unit_attention = false, .without_unit = false, .writes = false, .needs_unmap = false,
     .timeout_seconds = long_running, .begin = begin_start_stop_unit},
    {.opcode = Opcode::read_capacity_10, .service_action = {}, .name = "READ CAPACITY(10)", .cdb_bytes = 10,
     .usage = {0x25, 0, 0, 0, 0, 0, 0, 0, 0, control},
     .during_unit_attention = false, .without_unit = false, .writes = false, .needs_unmap = false,
     .timeout_seconds = quick, .begin = begin_read_capacity_10},
    {.opcode = Opcode::read_10, .service_action = {}, .name = "READ(10)", .cdb_bytes = 10,
     .usage = {0x28, 0xf8, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, control},
     .during_unit_attention = false, .without_unit = false, .writes = false, .needs_unmap = false,
     .timeout_seconds = transfer, .begin = begin_read},
    {.opcode = Opcode::write_10, .service_action = {}, .name = "WRITE(10)", .cdb_bytes = 10,
     .usage = {0x2a, 0xf8, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, control},
     .during_unit_attention = false, .without_unit = false, .writes = true, .needs_unmap = false,
     .timeout_seconds = transfer, .begin = begin_write},
    {.opcode = Opcode::verify_10, .service_action = {}, .name = "VERIFY(10)", .cdb_bytes = 10,
     .usage = {0x2f, 0xf6, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, control},
     .during_unit_attention = false, .without_unit = false, .writes = false, .needs_unmap = false,
     .timeout_seconds = long_running, .begin = begin_verify},
    {.opcode = Opcode::synchronize_cache_10, .service_action = {}, .name = "SYNCHRONIZE CACHE(10)", .cdb_bytes = 10,
     .usage = {0x35, 0x02, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, control},
     .during_unit_attention = false, .without_unit = false, .writes = false, .needs_unmap = false,
     .timeout_seconds = long_running, .begin = begin_synchronize_cache},
    {.opcode = Opcode::write_same_10, .service_action = {}, .name = "WRITE SAME(10)", .cdb_bytes = 10,
     .usage = {0x41, 0xf8, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, control},
     .during_unit_attention = false, .without_unit = false, .writes = true, .needs_unmap = false,
     .timeout_seconds = long_running, .begin = begin_write_same},
    {.opcode = Opcode::unmap, .service_action = {}, .name = "UNMAP", .cdb_bytes = 10,
     .usage = {0x42, 0x01, 0, 0, 0, 0, 0, 0xff, 0xff, control},
     .during_unit_attention = false, .without_unit = false, .writes = true, .needs_unmap = true,
     .timeout_seconds = long_running, .begin = begin_unmap},
    {.opcode = Opcode::mode_sense_10, .service_action = {}, .name = "MODE SENSE(10)", .cdb_bytes = 10,
     .usage = {0x5a, 0x08, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, control},
     .during_unit_attention = false, .without_unit = false, .writes = false, .needs_unmap = false,
     .timeout_seconds = quick, .begin = begin_mode_sense},
    {.opcode = Opcode::read_16, .service_action = {}, .name = "READ(16)", .cdb_bytes = 16,
     .usage = {0x88, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, control},
     .during_unit_attention = false, .without_unit = false, .writes = false, .needs_unmap = false,
     .timeout_seconds = transfer, .begin = begin_read},
    {.opcode = Opcode::write_16, .service_action = {}, .name = "WRITE(16)", .cdb_bytes = 16,
     .usage = {0x8a, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, control},
     .during_unit_attention = false, .without_unit = false, .writes = true, .needs_unmap = false,
     .timeout_seconds = transfer, .begin = begin_write},
    {.opcode = Opcode::verify_16, .service_action = {}, .name = "VERIFY(16)", .cdb_bytes = 16,
     .usage = {0x8f, 0xf6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, control},
     .during_unit_attention = false, .without_unit = false, .writes = false, .needs_unmap = false,
     .timeout_seconds = long_running, .begin = begin_verify},
    {.opcode = Opcode::synchronize_cache_16, .service_action = {}, .name = "SYNCHRONIZE CACHE(16)", .cdb_bytes = 16,
     .usage = {0x91, 0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, control},
     .during_unit_attention = false, .without_unit = false, .writes = false, .needs_unmap = false,
     .timeout_seconds = long_running, .begin = begin_synchronize_cache},
    {.opcode = Opcode::write_same_16, .service_action = {}, .name = "WRITE SAME(16)", .cdb_bytes = 16,
     .usage = {0x93, 0xf9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, control},
     .during_unit_attention = false, .without_unit = false, .writes = true, .needs_unmap = false,
     .timeout_seconds = long_running, .begin = begin_write_same},
    {.opcode = Opcode::service_action_in_16, .service_action = service_action_read_capacity_16,
     .name = "READ CAPACITY(16)", .cdb_bytes = 16,
     .usage = {0x9e, service_action_read_capacity_16, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, control},
     .during_unit_attention = false, .without_unit = false, .writes = false, .needs_unmap = false,
     .timeout_seconds = quick, .begin = begin_read_capacity_16},
    {.opcode = Opcode::report_luns, .service_action = {}, .name = "REPORT LUNS", .cdb_bytes = 12,
     .usage = {0xa0, 0, 0xff, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, control},
     .during_unit_attention = true, .without_unit = true, .writes = false, .needs_unmap = false,
     .timeout_seconds = quick, .begin = begin_report_luns},
    {.opcode = Opcode::maintenance_in, .service_action = service_action_report_opcodes,
     .name = "REPORT SUPPORTED OPERATION CODES", .cdb_bytes = 12,
     .usage = {0xa3, service_action_report_opcodes, 0x87, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, control},
     .during_unit_attention = false, .without_unit = false, .writes = false, .needs_unmap = false,
     .timeout_seconds = quick, .begin = begin_report_opcodes},
    {.opcode = Opcode::read_12, .service_action = {}, .name = "READ(12)", .cdb_bytes = 12,
     .usage = {0xa8, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, control},
     .during_unit_attention = false, .without_unit = false, .writes = false, .needs_unmap = false,
     .timeout_seconds = transfer, .begin = begin_read},
    {.opcode = Opcode::write_12, .service_action = {}, .name = "WRITE(12)", .cdb_bytes = 12,
     .usage = {0xaa, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, control},
     .during_unit_attention = false, .without_unit = false, .writes = true, .needs_unmap = false,
     .timeout_seconds = transfer, .begin = begin_write},
    {.opcode = Opcode::verify_12, .service_action = {}, .name = "VERIFY(12)", .cdb_bytes = 12,
     .usage = {0xaf, 0xf6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, control},
     .during_unit_attention = false, .without_unit = false, .writes = false, .needs_unmap = false,
     .timeout_seconds = long_running, .begin = begin_verify},
};
// clang-format on

// Position in the table by operation code; no operation code here has two service actions.
constexpr uint8_t not_there = 0xff;
constexpr std::array<uint8_t, 256> make_index() {
  std::array<uint8_t, 256> index{};
  index.fill(not_there);
  for (uint8_t i = 0; i < std::size(table); ++i) index[static_cast<uint8_t>(table[i].opcode)] = i;
  return index;
}
constexpr std::array<uint8_t, 256> index_by_opcode = make_index();

}  // namespace

std::span<const CommandEntry> command_table() {
  return table;
}

const CommandEntry* find_command(const Cdb& cdb, bool& opcode_known) {
  const uint8_t position = index_by_opcode[std::to_integer<uint8_t>(cdb[0])];
  opcode_known = position != not_there;
  if (!opcode_known) return nullptr;
  const CommandEntry& entry = table[position];
  const bool other_action =
      entry.service_action && (std::to_integer<unsigned>(cdb[1]) & 0x1f) != *entry.service_action;
  return other_action ? nullptr : &entry;
}

}  // namespace vjbod::scsi
