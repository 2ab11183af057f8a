// SPDX-License-Identifier: Apache-2.0
// REPORT SUPPORTED OPERATION CODES (SPC-4 6.35), from the command table.
#pragma once

#include "common/scsi/cdb.h"

namespace vjbod::scsi {

class Execution;

void begin_report_opcodes(Execution& execution, const Command& command);

}  // namespace vjbod::scsi
