// SPDX-License-Identifier: Apache-2.0
// The commands of this device server, in one table: it drives dispatch and is what REPORT SUPPORTED
// OPERATION CODES reports, so that we never advertise what we do not have, or the other way round.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "common/scsi/cdb.h"

namespace vjbod::scsi {

class Execution;

struct CommandEntry {
  Opcode opcode;
  std::optional<uint8_t> service_action;
  const char* name;
  uint8_t cdb_bytes;
  // A one for every bit that is looked at; operation code and service action stand for themselves
  // (SPC-4 6.35.3).
  std::array<uint8_t, 16> usage;
  bool during_unit_attention;  // runs although a unit attention is pending (SAM-5 5.14)
  bool without_unit;           // has an answer for a LUN that is not mapped
  bool writes;                 // needs a unit that is not write protected
  bool needs_unmap;            // exists only where the backstore can unmap
  uint32_t timeout_seconds;    // how long an initiator should wait at least
  void (*begin)(Execution& execution, const Command& command);
};

std::span<const CommandEntry> command_table();

// Null for an operation code or service action that is not in the table; `opcode_known` tells which
// of the two it was.
const CommandEntry* find_command(const Cdb& cdb, bool& opcode_known);

}  // namespace vjbod::scsi
