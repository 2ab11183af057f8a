// SPDX-License-Identifier: Apache-2.0
#include "initiator/disk/geometry.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "common/scsi/cache_id_page.h"

namespace vjbod::initiator {

namespace {

class DiskErrorCategory final : public std::error_category {
 public:
  const char* name() const noexcept override { return "disk"; }
  std::string message(int code) const override {
    switch (static_cast<DiskErrc>(code)) {
      case DiskErrc::not_a_disk: return "not a disk";
      case DiskErrc::not_usable: return "not usable";
      case DiskErrc::probe_failed: return "probe failed";
      case DiskErrc::identity_mismatch: return "identity mismatch";
      case DiskErrc::writes_lost: return "writes lost";
      case DiskErrc::attached_twice: return "attached twice";
      case DiskErrc::io_timeout: return "I/O timeout";
    }
    return "unknown";
  }
};

std::string eui64_of(const std::vector<scsi::Designator>& designators) {
  for (const scsi::Designator& designator : designators) {
    if (designator.type != scsi::DesignatorType::eui64 || designator.association != 0) continue;
    std::string text = "eui.";
    for (std::byte b : designator.bytes)
      text += fmt::format("{:02x}", std::to_integer<unsigned>(b));
    return text;
  }
  return {};
}

// `reported` in blocks, 0: no limit told. At least one block.
uint32_t bounded_blocks(uint64_t reported, uint64_t limit_bytes, uint32_t block_bytes) {
  const uint64_t limit = std::max<uint64_t>(limit_bytes / block_bytes, 1);
  return static_cast<uint32_t>(reported == 0 ? limit : std::min(reported, limit));
}

}  // namespace

const std::error_category& disk_error_category() {
  static const DiskErrorCategory category;
  return category;
}

Result<ProbeResult> interpret(const ProbeAnswers& answers) {
  const scsi::Peripheral peripheral = answers.inquiry.peripheral;
  if (peripheral.qualifier != scsi::qualifier_connected)
    return fail(DiskErrc::not_a_disk, "The target has no such LUN (peripheral qualifier {}).",
                peripheral.qualifier);
  if (peripheral.device_type != scsi::device_type_disk)
    return fail(DiskErrc::not_a_disk, "The LUN is no disk (device type {:#04x}).",
                peripheral.device_type);
  const scsi::Capacity& capacity = answers.capacity;
  const uint32_t block = capacity.block_bytes;
  if (block < block_bytes_min || block > block_bytes_limit || !std::has_single_bit(block))
    return fail(DiskErrc::not_usable, "The LUN has blocks of {} bytes, which cannot be served.",
                block);
  if (capacity.blocks == 0) return fail(DiskErrc::not_usable, "The LUN has no blocks.");
  if (capacity.protection_enabled)
    return fail(DiskErrc::not_usable, "The LUN is formatted with protection information.");

  ProbeResult result;
  result.vendor = answers.inquiry.vendor;
  result.product = answers.inquiry.product;
  result.revision = answers.inquiry.revision;
  if (result.vendor == scsi::cache_id_vendor) result.cache_id = answers.cache_id;
  result.identity.naa = scsi::naa_of(answers.designators).value_or(eui64_of(answers.designators));
  result.identity.serial = answers.serial;
  result.identity.size_bytes = capacity.blocks * block;
  result.identity.block_bytes = block;

  const scsi::BlockLimits limits = answers.limits.value_or(scsi::BlockLimits{});
  const auto provisioning = answers.provisioning.value_or(scsi::LogicalBlockProvisioning{});
  TargetFeatures& features = result.features;
  features.block_bytes = block;
  features.transfer_blocks_max =
      bounded_blocks(limits.maximum_transfer_blocks, transfer_bytes_limit, block);
  features.force_unit_access = answers.mode && answers.mode->dpo_and_fua;
  // A B0 page with a zero there says that the command is not to be used.
  features.unmap = provisioning.unmap && (!answers.limits || limits.maximum_unmap_blocks > 0);
  features.unmap_blocks_max = bounded_blocks(limits.maximum_unmap_blocks, trim_bytes_limit, block);
  features.write_same = answers.write_same_16.value_or(provisioning.write_same_16_unmap ||
                                                       limits.maximum_write_same_blocks > 0);
  features.write_same_unmaps = features.write_same && provisioning.write_same_16_unmap &&
                               (provisioning.reads_zeros || capacity.unmapped_reads_zeros);
  features.write_same_no_data = features.write_same && answers.write_same_no_data;
  features.write_same_blocks_max =
      bounded_blocks(limits.maximum_write_same_blocks, write_same_bytes_limit, block);

  BlockGeometry& geometry = result.geometry;
  geometry.size_bytes = result.identity.size_bytes;
  geometry.block_bytes = block;
  // An exponent that makes no sense is taken for none.
  const uint64_t physical = uint64_t{block}
                            << std::min<unsigned>(capacity.physical_block_exponent, 16);
  geometry.physical_block_bytes =
      physical <= transfer_bytes_limit ? static_cast<uint32_t>(physical) : block;
  geometry.transfer_bytes_max = uint64_t{features.transfer_blocks_max} * block;
  geometry.transfer_bytes_optimal =
      std::min(uint64_t{limits.optimal_transfer_blocks} * block, geometry.transfer_bytes_max);
  geometry.read_only = answers.mode && answers.mode->write_protected;
  // Without a word about it there is one: a flush too many is only slow.
  geometry.volatile_cache =
      !answers.mode || !answers.mode->caching || answers.mode->caching->write_cache_enabled;
  geometry.force_unit_access = features.force_unit_access;
  const bool trim_by_write_same = features.write_same && provisioning.write_same_16_unmap;
  geometry.trim = features.unmap || trim_by_write_same;
  if (geometry.trim) {
    geometry.trim_granularity_bytes = uint64_t{limits.optimal_unmap_granularity_blocks} * block;
    geometry.trim_bytes_max =
        uint64_t{features.unmap ? features.unmap_blocks_max : features.write_same_blocks_max} *
        block;
  }
  geometry.write_zeroes = true;
  geometry.fast_write_zeroes = features.write_same;
  return result;
}

}  // namespace vjbod::initiator
