// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/report_opcodes.h"

#include "target/scsi/command_table.h"
#include "target/scsi/device_server.h"
#include "target/scsi/execution.h"

namespace vjbod::scsi {

namespace {

constexpr size_t timeouts_descriptor_bytes = 12;

enum class ReportingOptions : uint8_t {
  all = 0,
  one_opcode = 1,          // that has no service actions
  one_service_action = 2,  // of an operation code that has
  one_of_either = 3,
};

bool exists(const CommandEntry& entry, const MappedUnit& unit) {
  return !entry.needs_unmap || unit.can_unmap;
}

void put_timeouts(const CommandEntry& entry, ByteWriter& out) {
  out.u16(timeouts_descriptor_bytes - 2).u8(0).u8(0);
  out.u32(0);  // no nominal time
  out.u32(entry.timeout_seconds);
}

void put_all(const MappedUnit& unit, bool timeouts, ByteWriter& out) {
  uint32_t count = 0;
  for (const CommandEntry& entry : command_table()) count += exists(entry, unit) ? 1 : 0;
  out.u32(count * static_cast<uint32_t>(8 + (timeouts ? timeouts_descriptor_bytes : 0)));
  for (const CommandEntry& entry : command_table()) {
    if (!exists(entry, unit)) continue;
    out.u8(static_cast<uint8_t>(entry.opcode)).u8(0).u16(entry.service_action.value_or(0)).u8(0);
    out.u8(static_cast<uint8_t>((timeouts ? 0x02 : 0) | (entry.service_action ? 0x01 : 0)));
    out.u16(entry.cdb_bytes);
    if (timeouts) put_timeouts(entry, out);
  }
}

void put_one(const CommandEntry* entry, bool timeouts, ByteWriter& out) {
  constexpr uint8_t not_supported = 1;
  constexpr uint8_t supported = 3;
  if (entry == nullptr) {
    out.u8(0).u8(not_supported).u16(0);
    return;
  }
  out.u8(0).u8(static_cast<uint8_t>(supported | (timeouts ? 0x80 : 0))).u16(entry->cdb_bytes);
  for (size_t i = 0; i < entry->cdb_bytes; ++i) out.u8(entry->usage[i]);
  if (timeouts) put_timeouts(*entry, out);
}

}  // namespace

void begin_report_opcodes(Execution& execution, const Command& command) {
  const auto& report = std::get<ReportSupportedOperationCodes>(command);
  const auto options = static_cast<ReportingOptions>(report.reporting_options);
  ByteWriter data = execution.server().parameter_data();
  if (options == ReportingOptions::all) {
    put_all(execution.unit(), report.return_timeouts, data);
    return execution.server().return_parameters(execution, data, report.allocation_length);
  }
  if (report.reporting_options > static_cast<uint8_t>(ReportingOptions::one_of_either)) {
    return execution.finish(invalid_field_in_cdb(2, 2));
  }
  const CommandEntry* found = nullptr;
  bool has_service_actions = false;
  bool opcode_known = false;
  for (const CommandEntry& entry : command_table()) {
    if (static_cast<uint8_t>(entry.opcode) != report.requested_opcode) continue;
    if (!exists(entry, execution.unit())) continue;
    opcode_known = true;
    has_service_actions = entry.service_action.has_value();
    if (options == ReportingOptions::one_opcode ||
        entry.service_action.value_or(0) == report.requested_service_action) {
      found = &entry;
    }
  }
  // Asked in a way that does not suit the operation code (SPC-4 table 255).
  if (opcode_known && options == ReportingOptions::one_opcode && has_service_actions) {
    return execution.finish(invalid_field_in_cdb(2, 2));
  }
  if (opcode_known && options == ReportingOptions::one_service_action && !has_service_actions) {
    return execution.finish(invalid_field_in_cdb(2, 2));
  }
  put_one(found, report.return_timeouts, data);
  execution.server().return_parameters(execution, data, report.allocation_length);
}

}  // namespace vjbod::scsi
