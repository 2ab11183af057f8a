// SPDX-License-Identifier: Apache-2.0
// SCSI bytes from either end: a CDB that decodes is the same after encoding and decoding again;
// sense data and parameter data of a peer are parsed within their bounds.
#include <algorithm>
#include <array>

#include "common/base/check.h"
#include "common/scsi/capacity.h"
#include "common/scsi/cdb.h"
#include "common/scsi/inquiry.h"
#include "common/scsi/lun.h"
#include "common/scsi/mode_page.h"
#include "common/scsi/report_luns.h"
#include "common/scsi/sense.h"
#include "common/scsi/unmap_list.h"

using namespace vjbod;
using namespace vjbod::scsi;

namespace {

void check_cdb(ConstBytes bytes) {
  const auto command = decode_cdb(bytes);
  if (!command) return;
  VJBOD_CHECK(decode_cdb(encode(*command)).value() == *command);
}

void check_sense(ConstBytes bytes) {
  const auto sense = parse_sense(bytes);
  if (!sense) return;
  std::array<std::byte, descriptor_sense_bytes_max> again;
  const size_t size = build_descriptor_sense(*sense, again);
  VJBOD_CHECK(parse_sense(ConstBytes(again).first(size)).value() == *sense);
  VJBOD_CHECK(!describe(*sense).empty());
}

void check_printable(const std::string& text) {
  VJBOD_CHECK(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }));
}

void check_inquiry(ConstBytes bytes) {
  if (const auto inquiry = parse_standard_inquiry(bytes)) {
    check_printable(inquiry->vendor + inquiry->product + inquiry->revision);
  }
  if (const auto serial = parse_unit_serial_number(bytes)) check_printable(*serial);
  if (const auto designators = parse_device_identification(bytes)) (void)naa_of(*designators);
  (void)parse_supported_pages(bytes);
  (void)parse_block_limits(bytes);
  (void)parse_block_characteristics(bytes);
  (void)parse_logical_block_provisioning(bytes);
}

void check_parameter_data(ConstBytes bytes) {
  if (const auto capacity = parse_capacity_16(bytes)) {
    VJBOD_CHECK(capacity->blocks <= ~uint64_t{0} / capacity->block_bytes);
  }
  (void)parse_capacity_10(bytes);
  (void)parse_mode_data(bytes, CdbSize::six);
  (void)parse_mode_data(bytes, CdbSize::ten);
  if (const auto luns = parse_report_luns(bytes)) {
    VJBOD_CHECK(report_luns_bytes(luns->luns.size()) <= bytes.size());
    for (const LunAddress& address : luns->luns) (void)decode_lun(address);
  }
  if (const auto list = UnmapList::parse(bytes)) {
    for (size_t i = 0; i < list->size(); ++i) (void)(*list)[i];
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ConstBytes bytes(reinterpret_cast<const std::byte*>(data), size);
  check_cdb(bytes);
  check_sense(bytes);
  check_inquiry(bytes);
  check_parameter_data(bytes);
  return 0;
}
