// SPDX-License-Identifier: Apache-2.0
// READ CAPACITY (10) and (16) parameter data (SBC-3 5.15, 5.16). Pure; any thread.
#pragma once

#include <cstdint>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/scsi/errc.h"

namespace vjbod::scsi {

struct Capacity {
  uint64_t blocks = 0;  // not the last LBA
  uint32_t block_bytes = 0;
  // The rest stands in the (16) data only.
  uint8_t physical_block_exponent = 0;  // a physical block has 2^this logical ones
  uint16_t lowest_aligned_lba = 0;
  bool provisioning_management = false;  // LBPME: UNMAP or WRITE SAME with UNMAP work
  bool unmapped_reads_zeros = false;     // LBPRZ
  bool protection_enabled = false;       // the block carries protection information
  bool operator==(const Capacity&) const = default;
};

inline constexpr size_t capacity_10_bytes = 8;
inline constexpr size_t capacity_16_bytes = 32;

// A unit too large for 32 bits says 0xffffffff in the (10) data: ask with (16).
void build_capacity_10(const Capacity& capacity, ByteWriter& out);
void build_capacity_16(const Capacity& capacity, ByteWriter& out);

// blocks is 0xffffffff + 1 when the (10) data could not say it. Fails for a size that does not fit
// 64 bits of bytes, or a block size of zero.
Result<Capacity> parse_capacity_10(ConstBytes bytes);
Result<Capacity> parse_capacity_16(ConstBytes bytes);

}  // namespace vjbod::scsi
