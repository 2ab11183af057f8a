// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/primary_commands.h"

#include <array>
#include <vector>

#include "common/scsi/mode_page.h"
#include "common/scsi/report_luns.h"
#include "common/scsi/sense.h"
#include "target/scsi/device_server.h"
#include "target/scsi/execution.h"
#include "target/scsi/identity_pages.h"

namespace vjbod::scsi {

void begin_test_unit_ready(Execution& execution, const Command&) {
  execution.finish(good(0));
}

// A pending unit attention is told as data, and counts as told (SPC-4 6.39).
void begin_request_sense(Execution& execution, const Command& command) {
  const auto& request = std::get<RequestSense>(command);
  Sense sense;
  if (!execution.has_unit()) {
    sense = {.key = SenseKey::illegal_request, .additional = asc::logical_unit_not_supported};
  } else if (const auto attention = execution.unit().attentions.take()) {
    sense = {.key = SenseKey::unit_attention, .additional = sense_of(*attention)};
  }
  std::array<std::byte, descriptor_sense_bytes_max> bytes;
  const size_t size = request.descriptor_format ? build_descriptor_sense(sense, bytes)
                                                : build_fixed_sense(sense, bytes);
  ByteWriter data = execution.server().parameter_data();
  data.bytes(ConstBytes(bytes).first(size));
  execution.server().return_parameters(execution, data, request.allocation_length);
}

void begin_inquiry(Execution& execution, const Command& command) {
  const auto& inquiry = std::get<Inquiry>(command);
  if (!inquiry.vital_product_data && inquiry.page_code != 0) {
    return execution.finish(invalid_field_in_cdb(2, 7));
  }
  ByteWriter data = execution.server().parameter_data();
  if (!inquiry.vital_product_data) {
    build_standard_page(execution.has_unit(), data);
  } else if (!execution.has_unit()) {
    return execution.finish(illegal_request(asc::logical_unit_not_supported));
  } else if (!build_vpd_page(execution.unit(), inquiry.page_code, data)) {
    return execution.finish(invalid_field_in_cdb(2, 7));
  }
  execution.server().return_parameters(execution, data, inquiry.allocation_length);
}

void begin_mode_sense(Execution& execution, const Command& command) {
  constexpr uint8_t changeable_values = 1;
  constexpr uint8_t saved_values = 3;
  const auto& sense = std::get<ModeSense>(command);
  const MappedUnit& unit = execution.unit();
  if (sense.page_control == saved_values) {
    return execution.finish(illegal_request(asc::saving_parameters_not_supported));
  }
  const bool all = sense.page_code == mode_page_all;
  if (!all && sense.page_code != mode_page_caching && sense.page_code != mode_page_control) {
    return execution.finish(invalid_field_in_cdb(2, 5));
  }
  // No page here has subpages: page 0 of each is the page itself.
  if (sense.subpage_code != 0 && sense.subpage_code != mode_subpage_all) {
    return execution.finish(invalid_field_in_cdb(3, 7));
  }
  ModeData data;
  data.write_protected = unit.read_only;
  data.dpo_and_fua = true;
  if (!sense.disable_block_descriptors) data.block = {unit.blocks, unit.block_bytes};
  if (all || sense.page_code == mode_page_caching) {
    data.caching = CachingPage{.write_cache_enabled = unit.volatile_cache};
  }
  if (all || sense.page_code == mode_page_control) {
    data.control = ControlPage{.task_set_per_nexus = true, .unrestricted_reordering = true};
  }
  ByteWriter out = execution.server().parameter_data();
  build_mode_data(data, sense.size, sense.page_control == changeable_values, out);
  execution.server().return_parameters(execution, out, sense.allocation_length);
}

void begin_report_luns(Execution& execution, const Command& command) {
  constexpr uint8_t addressing_methods_select = 0x00;
  constexpr uint8_t well_known_select = 0x01;
  constexpr uint8_t all_select = 0x02;
  constexpr uint32_t allocation_length_min = 16;  // SPC-4 6.33
  const auto& report = std::get<ReportLuns>(command);
  if (!execution.has_unit() && decode_lun(execution.task().lun) != 0) {
    return execution.finish(illegal_request(asc::logical_unit_not_supported));
  }
  if (report.select_report != addressing_methods_select &&
      report.select_report != well_known_select && report.select_report != all_select) {
    return execution.finish(invalid_field_in_cdb(2, 7));
  }
  if (report.allocation_length < allocation_length_min) {
    return execution.finish(invalid_field_in_cdb(6, 7));
  }
  std::vector<uint16_t> numbers;
  for (const auto& unit : execution.server().luns().units()) {
    unit->attentions.clear(UnitAttention::reported_luns_changed);
    if (report.select_report != well_known_select) numbers.push_back(unit->number);
  }
  ByteWriter data = execution.server().parameter_data();
  build_report_luns(numbers, data);
  execution.server().return_parameters(execution, data, report.allocation_length);
}

}  // namespace vjbod::scsi
