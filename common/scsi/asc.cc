// SPDX-License-Identifier: Apache-2.0
#include "common/scsi/asc.h"

namespace vjbod::scsi {

namespace {

struct Entry {
  AdditionalSense additional;
  const char* name;
};

constexpr Entry entries[] = {
    {asc::none, "NO ADDITIONAL SENSE INFORMATION"},
    {asc::not_ready, "LOGICAL UNIT NOT READY, CAUSE NOT REPORTABLE"},
    {asc::becoming_ready, "LOGICAL UNIT IS IN PROCESS OF BECOMING READY"},
    {asc::unit_failure, "LOGICAL UNIT FAILURE"},
    {asc::write_error, "WRITE ERROR"},
    {asc::invalid_field_in_information_unit, "INVALID FIELD IN COMMAND INFORMATION UNIT"},
    {asc::unrecovered_read_error, "UNRECOVERED READ ERROR"},
    {asc::parameter_list_length_error, "PARAMETER LIST LENGTH ERROR"},
    {asc::miscompare_during_verify, "MISCOMPARE DURING VERIFY OPERATION"},
    {asc::invalid_operation_code, "INVALID COMMAND OPERATION CODE"},
    {asc::lba_out_of_range, "LOGICAL BLOCK ADDRESS OUT OF RANGE"},
    {asc::invalid_field_in_cdb, "INVALID FIELD IN CDB"},
    {asc::logical_unit_not_supported, "LOGICAL UNIT NOT SUPPORTED"},
    {asc::invalid_field_in_parameter_list, "INVALID FIELD IN PARAMETER LIST"},
    {asc::write_protected, "WRITE PROTECTED"},
    {asc::space_allocation_failed, "SPACE ALLOCATION FAILED WRITE PROTECT"},
    {asc::power_on_or_reset, "POWER ON, RESET, OR BUS DEVICE RESET OCCURRED"},
    {asc::power_on, "POWER ON OCCURRED"},
    {asc::scsi_bus_reset, "SCSI BUS RESET OCCURRED"},
    {asc::device_reset, "BUS DEVICE RESET FUNCTION OCCURRED"},
    {asc::nexus_loss, "I_T NEXUS LOSS OCCURRED"},
    {asc::mode_parameters_changed, "MODE PARAMETERS CHANGED"},
    {asc::capacity_changed, "CAPACITY DATA HAS CHANGED"},
    {asc::commands_cleared_by_another, "COMMANDS CLEARED BY ANOTHER INITIATOR"},
    {asc::saving_parameters_not_supported, "SAVING PARAMETERS NOT SUPPORTED"},
    {asc::medium_not_present, "MEDIUM NOT PRESENT"},
    {asc::inquiry_data_changed, "INQUIRY DATA HAS CHANGED"},
    {asc::reported_luns_changed, "REPORTED LUNS DATA HAS CHANGED"},
    {asc::internal_target_failure, "INTERNAL TARGET FAILURE"},
    {asc::invalid_message_error, "INVALID MESSAGE ERROR"},
};

}  // namespace

const char* name_of(AdditionalSense additional) {
  for (const Entry& entry : entries) {
    if (entry.additional == additional) return entry.name;
  }
  return "unknown";
}

}  // namespace vjbod::scsi
