// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/identity_pages.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "common/scsi/inquiry.h"
#include "common/scsi/text_field.h"
#include "target/scsi/limits.h"

namespace vjbod::scsi {

namespace {

constexpr Peripheral disk{qualifier_connected, device_type_disk};

// Standards we claim, without a version of each (SPC-4 annex F.8).
constexpr uint16_t claims_sam_5 = 0x00a0;
constexpr uint16_t claims_spc_4 = 0x0460;
constexpr uint16_t claims_sbc_3 = 0x04c0;

Designator naa_designator(const LogicalUnit& unit) {
  Designator designator{.type = DesignatorType::naa, .association = 0, .code_set = 1, .bytes = {}};
  designator.bytes.resize(8);
  store_big_endian(designator.bytes.data(), unit.naa());
  return designator;
}

Designator t10_designator(const LogicalUnit& unit) {
  const std::string serial = unit.serial();
  Designator designator{
      .type = DesignatorType::t10_vendor_id, .association = 0, .code_set = 2, .bytes = {}};
  designator.bytes.resize(8 + serial.size());
  ByteWriter out(designator.bytes);
  put_text(vendor_identification, 8, out);
  out.bytes(as_bytes(serial));
  return designator;
}

BlockLimits block_limits(const MappedUnit& unit) {
  const backstore::Geometry geometry = unit.unit->backstore().geometry();
  const auto blocks = [&](uint64_t bytes) {
    return static_cast<uint32_t>(bytes >> unit.block_shift);
  };
  BlockLimits limits;
  limits.write_same_no_zero = true;
  limits.optimal_transfer_granularity_blocks =
      static_cast<uint16_t>(std::max<uint32_t>(1, blocks(geometry.physical_block_bytes)));
  limits.maximum_transfer_blocks = transfer_blocks_max;
  limits.optimal_transfer_blocks = blocks(transfer_bytes_optimal);
  limits.maximum_write_same_blocks = blocks(write_same_bytes_max);
  if (unit.can_unmap) {
    limits.maximum_unmap_blocks = unmap_blocks_max;
    limits.maximum_unmap_descriptors = unmap_descriptors_max;
    limits.optimal_unmap_granularity_blocks =
        std::max<uint32_t>(1, blocks(geometry.unmap_granularity_bytes));
    limits.unmap_granularity_alignment_blocks = 0;
  }
  return limits;
}

LogicalBlockProvisioning provisioning(const MappedUnit& unit) {
  return {.unmap = unit.can_unmap,
          .write_same_16_unmap = unit.can_unmap,
          .write_same_10_unmap = unit.can_unmap,
          .reads_zeros = unit.can_unmap,
          .anchor_supported = false,
          .type = unit.can_unmap ? ProvisioningType::thin : ProvisioningType::not_reported};
}

}  // namespace

void build_standard_page(bool mapped, ByteWriter& out) {
  StandardInquiry inquiry;
  inquiry.peripheral = mapped ? disk : Peripheral{qualifier_not_capable, device_type_none};
  inquiry.vendor = vendor_identification;
  inquiry.product = product_identification;
  inquiry.revision = product_revision;
  inquiry.version_descriptors = {claims_sam_5, claims_spc_4, claims_sbc_3};
  build(inquiry, out);
}

bool build_vpd_page(const MappedUnit& unit, uint8_t page, ByteWriter& out) {
  constexpr uint16_t does_not_rotate = 1;
  const std::string& cache_id = unit.unit->cache_id();
  if (page == vpd_page_cache_id && !cache_id.empty()) {
    build_cache_id(disk, cache_id, out);
    return true;
  }
  switch (static_cast<VpdPage>(page)) {
    case VpdPage::supported_pages: {
      std::vector<uint8_t> pages{0x00, 0x80, 0x83, 0xb0, 0xb1, 0xb2};
      if (!cache_id.empty()) pages.push_back(vpd_page_cache_id);
      build_supported_pages(disk, pages, out);
      return true;
    }
    case VpdPage::unit_serial_number:
      build_unit_serial_number(disk, unit.unit->serial(), out);
      return true;
    case VpdPage::device_identification:
      build_device_identification(disk, {naa_designator(*unit.unit), t10_designator(*unit.unit)},
                                  out);
      return true;
    case VpdPage::block_limits: build(disk, block_limits(unit), out); return true;
    case VpdPage::block_characteristics:
      build(disk, BlockCharacteristics{does_not_rotate}, out);
      return true;
    case VpdPage::logical_block_provisioning: build(disk, provisioning(unit), out); return true;
  }
  return false;
}

}  // namespace vjbod::scsi
