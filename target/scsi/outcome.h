// SPDX-License-Identifier: Apache-2.0
// Makes Outcomes: sense data by kind of failure, in the fixed format (D_SENSE is 0 here).
#pragma once

#include <system_error>

#include "common/scsi/sense.h"
#include "target/backstore/backstore.h"
#include "target/scsi/task.h"

namespace vjbod::scsi {

Outcome good(uint64_t actual_data_bytes);
Outcome with_status(Status status);
Outcome check_condition(const Sense& sense, uint64_t actual_data_bytes = 0);
Outcome illegal_request(AdditionalSense additional, uint64_t actual_data_bytes = 0);
// `bit`: the most significant bit of the field in `byte` (SPC-4 4.5.2.4.2).
Outcome invalid_field_in_cdb(uint16_t byte, uint8_t bit);
Outcome invalid_field_in_parameter_list(uint16_t byte);
// The initiator means to send less than the CDB asks for: nothing was moved (the choice b of
// FCP-4 9.4.2, which writes no half of a request).
Outcome too_little_data(uint64_t actual_data_bytes);
// What the failure of a backstore operation is to the initiator.
Outcome backstore_failure(backstore::OpKind kind, std::error_code error,
                          uint64_t actual_data_bytes);
// Whether the operation may well succeed when tried again: no medium is at fault.
bool is_shortage(std::error_code error);

}  // namespace vjbod::scsi
