// SPDX-License-Identifier: Apache-2.0
// The commands that touch the medium (SBC-3): checks of fields and ranges, then the course that
// does the work.
#pragma once

#include "common/scsi/cdb.h"

namespace vjbod::scsi {

class Execution;

void begin_read(Execution& execution, const Command& command);
void begin_write(Execution& execution, const Command& command);
void begin_verify(Execution& execution, const Command& command);
void begin_synchronize_cache(Execution& execution, const Command& command);
void begin_write_same(Execution& execution, const Command& command);
void begin_unmap(Execution& execution, const Command& command);
void begin_start_stop_unit(Execution& execution, const Command& command);
void begin_read_capacity_10(Execution& execution, const Command& command);
void begin_read_capacity_16(Execution& execution, const Command& command);

}  // namespace vjbod::scsi
