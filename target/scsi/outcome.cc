// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/outcome.h"

#include <cerrno>

namespace vjbod::scsi {

Outcome good(uint64_t actual_data_bytes) {
  Outcome outcome;
  outcome.actual_data_bytes = actual_data_bytes;
  return outcome;
}

Outcome with_status(Status status) {
  Outcome outcome;
  outcome.status = status;
  return outcome;
}

Outcome check_condition(const Sense& sense, uint64_t actual_data_bytes) {
  Outcome outcome;
  outcome.status = Status::check_condition;
  outcome.sense_bytes = static_cast<uint8_t>(build_fixed_sense(sense, outcome.sense));
  outcome.actual_data_bytes = actual_data_bytes;
  return outcome;
}

Outcome illegal_request(AdditionalSense additional, uint64_t actual_data_bytes) {
  return check_condition({.key = SenseKey::illegal_request, .additional = additional},
                         actual_data_bytes);
}

Outcome invalid_field_in_cdb(uint16_t byte, uint8_t bit) {
  return check_condition({.key = SenseKey::illegal_request,
                          .additional = asc::invalid_field_in_cdb,
                          .field = FieldPointer{.in_cdb = true, .byte = byte, .bit = bit}});
}

Outcome invalid_field_in_parameter_list(uint16_t byte) {
  return check_condition({.key = SenseKey::illegal_request,
                          .additional = asc::invalid_field_in_parameter_list,
                          .field = FieldPointer{.in_cdb = false, .byte = byte}});
}

Outcome too_little_data(uint64_t actual_data_bytes) {
  return illegal_request(asc::invalid_field_in_information_unit, actual_data_bytes);
}

bool is_shortage(std::error_code error) {
  switch (error.value()) {
    case ENOMEM:
    case EAGAIN:
    case EINTR:
    case EBUSY: return true;
    default: return false;
  }
}

Outcome backstore_failure(backstore::OpKind kind, std::error_code error,
                          uint64_t actual_data_bytes) {
  if (is_shortage(error)) return with_status(Status::busy);
  Sense sense;
  switch (error.value()) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      sense = {SenseKey::data_protect, asc::space_allocation_failed, false, {}, {}};
      break;
    case EROFS:
    case EPERM:
    case EACCES: sense = {SenseKey::data_protect, asc::write_protected, false, {}, {}}; break;
    case EIO:
    case ENODATA:
    case EILSEQ:
    case EREMOTEIO:
      sense.key = SenseKey::medium_error;
      sense.additional =
          kind == backstore::OpKind::read ? asc::unrecovered_read_error : asc::write_error;
      break;
    default: sense = {SenseKey::hardware_error, asc::internal_target_failure, false, {}, {}}; break;
  }
  return check_condition(sense, actual_data_bytes);
}

}  // namespace vjbod::scsi
