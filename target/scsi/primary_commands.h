// SPDX-License-Identifier: Apache-2.0
// The commands that tell what is there and how it is (SPC-4).
#pragma once

#include "common/scsi/cdb.h"

namespace vjbod::scsi {

class Execution;

void begin_test_unit_ready(Execution& execution, const Command& command);
void begin_request_sense(Execution& execution, const Command& command);
void begin_inquiry(Execution& execution, const Command& command);
void begin_mode_sense(Execution& execution, const Command& command);
void begin_report_luns(Execution& execution, const Command& command);

}  // namespace vjbod::scsi
