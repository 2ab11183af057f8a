// SPDX-License-Identifier: Apache-2.0
// What the answers of a probe mean: the disk's geometry, its identity, and what the target can do.
// Pure. Everything but INQUIRY and READ CAPACITY is optional: old targets have no B0, B2 or list of
// operation codes, and get defaults that every disk can serve.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/scsi/capacity.h"
#include "common/scsi/inquiry.h"
#include "common/scsi/mode_page.h"
#include "initiator/disk/block_device.h"
#include "initiator/disk/disk_identity.h"
#include "initiator/disk/scsi_translator.h"

namespace vjbod::initiator {

// No larger commands, whatever the target can take: a retry costs less, and requests overlap.
inline constexpr uint64_t transfer_bytes_limit = uint64_t{1} << 20;
// No longer ranges in one command: it has to be done within the command timeout.
inline constexpr uint64_t trim_bytes_limit = uint64_t{1} << 30;
inline constexpr uint64_t write_same_bytes_limit = uint64_t{256} << 20;
inline constexpr uint32_t block_bytes_min = 512;
inline constexpr uint32_t block_bytes_limit = 64 * 1024;

enum class DiskErrc {
  not_a_disk = 1,     // no LUN there, or a LUN of another kind
  not_usable,         // a size or block size that we cannot serve
  probe_failed,       // the target did not answer the questions of the probe
  identity_mismatch,  // another LUN
  writes_lost,        // acknowledged writes are gone
  io_timeout,         // for too long without a connection
  attached_twice,     // another disk of this host is the same LUN
};
const std::error_category& disk_error_category();
inline std::error_code make_error_code(DiskErrc code) {
  return {static_cast<int>(code), disk_error_category()};
}

// What the target answered, as far as it did.
struct ProbeAnswers {
  scsi::StandardInquiry inquiry;
  std::string serial;
  std::vector<scsi::Designator> designators;
  std::optional<scsi::BlockLimits> limits;
  std::optional<scsi::LogicalBlockProvisioning> provisioning;
  std::string cache_id;  // see common/scsi/cache_id_page.h; empty: the target tells none
  scsi::Capacity capacity;
  std::optional<scsi::ModeData> mode;
  std::optional<bool> write_same_16;  // by REPORT SUPPORTED OPERATION CODES
  bool write_same_no_data = false;
};

struct ProbeResult {
  DiskIdentity identity;
  BlockGeometry geometry;
  TargetFeatures features;
  std::string cache_id;
  std::string vendor, product, revision;
};

Result<ProbeResult> interpret(const ProbeAnswers& answers);

}  // namespace vjbod::initiator

template <>
struct std::is_error_code_enum<vjbod::initiator::DiskErrc> : std::true_type {};
