// SPDX-License-Identifier: Apache-2.0
// MODE SENSE (6) and (10) parameter data: header, block descriptor, caching and control page
// (SPC-4 7.5, SBC-3 6.5). Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/scsi/cdb.h"
#include "common/scsi/errc.h"

namespace vjbod::scsi {

inline constexpr uint8_t mode_page_caching = 0x08;
inline constexpr uint8_t mode_page_control = 0x0a;
inline constexpr uint8_t mode_page_all = 0x3f;
inline constexpr uint8_t mode_subpage_all = 0xff;

struct CachingPage {                 // SBC-3 6.5.5
  bool write_cache_enabled = false;  // WCE
  bool read_cache_disabled = false;  // RCD
  bool operator==(const CachingPage&) const = default;
};

struct ControlPage {                     // SPC-4 7.5.10
  bool task_set_per_nexus = false;       // TST 001b
  bool descriptor_sense = false;         // D_SENSE
  bool unrestricted_reordering = false;  // QUEUE ALGORITHM MODIFIER 1
  bool software_write_protect = false;   // SWP
  bool task_aborted_status = false;      // TAS
  bool operator==(const ControlPage&) const = default;
};

struct BlockDescriptor {  // SBC-3 6.5.2
  uint64_t blocks = 0;
  uint32_t block_bytes = 0;
  bool operator==(const BlockDescriptor&) const = default;
};

struct ModeData {
  bool write_protected = false;
  bool dpo_and_fua = false;  // DPOFUA
  std::optional<BlockDescriptor> block;
  std::optional<CachingPage> caching;
  std::optional<ControlPage> control;
  bool operator==(const ModeData&) const = default;
};

inline constexpr size_t mode_data_bytes_max = 8 + 8 + 20 + 12;

// `changeable`: the pages are the masks of what MODE SELECT could change: nothing.
void build_mode_data(const ModeData& data, CdbSize size, bool changeable, ByteWriter& out);
// Pages that we do not know are passed over; one cut short by the allocation length is left out.
Result<ModeData> parse_mode_data(ConstBytes bytes, CdbSize size);

}  // namespace vjbod::scsi
