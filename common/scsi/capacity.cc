// SPDX-License-Identifier: Apache-2.0
#include "common/scsi/capacity.h"

#include <algorithm>
#include <limits>

namespace vjbod::scsi {

namespace {

constexpr uint64_t lba_32_max = std::numeric_limits<uint32_t>::max();

Result<Capacity> checked(Capacity capacity, uint64_t last_lba) {
  if (capacity.block_bytes == 0) return fail(Errc::bad_data, "the unit reports blocks of 0 bytes");
  if (last_lba >= std::numeric_limits<uint64_t>::max() / capacity.block_bytes) {
    return fail(Errc::bad_data, "the unit reports last block {} of {} bytes: no such size exists",
                last_lba, capacity.block_bytes);
  }
  capacity.blocks = last_lba + 1;
  return capacity;
}

}  // namespace

void build_capacity_10(const Capacity& capacity, ByteWriter& out) {
  const uint64_t last = capacity.blocks == 0 ? 0 : capacity.blocks - 1;
  out.u32(static_cast<uint32_t>(std::min(last, lba_32_max))).u32(capacity.block_bytes);
}

void build_capacity_16(const Capacity& capacity, ByteWriter& out) {
  out.u64(capacity.blocks == 0 ? 0 : capacity.blocks - 1)
      .u32(capacity.block_bytes)
      .u8(capacity.protection_enabled ? 1 : 0)
      .u8(capacity.physical_block_exponent & 0xf)
      .u16(static_cast<uint16_t>((capacity.provisioning_management ? 0x8000U : 0) |
                                 (capacity.unmapped_reads_zeros ? 0x4000U : 0) |
                                 (capacity.lowest_aligned_lba & 0x3fffU)))
      .zeros(16);
}

Result<Capacity> parse_capacity_10(ConstBytes bytes) {
  if (bytes.size() < capacity_10_bytes) {
    return fail(Errc::short_data, "READ CAPACITY(10) data of {} bytes, {} are needed", bytes.size(),
                capacity_10_bytes);
  }
  Capacity capacity;
  capacity.block_bytes = load_big_endian<uint32_t>(&bytes[4]);
  return checked(capacity, load_big_endian<uint32_t>(&bytes[0]));
}

Result<Capacity> parse_capacity_16(ConstBytes bytes) {
  // Devices of SBC-2 return 12 bytes.
  if (bytes.size() < 12) {
    return fail(Errc::short_data, "READ CAPACITY(16) data of {} bytes, at least 12 are needed",
                bytes.size());
  }
  Capacity capacity;
  capacity.block_bytes = load_big_endian<uint32_t>(&bytes[8]);
  if (bytes.size() >= 16) {
    capacity.protection_enabled = (std::to_integer<unsigned>(bytes[12]) & 1) != 0;
    capacity.physical_block_exponent = std::to_integer<uint8_t>(bytes[13]) & 0xf;
    const auto flags = load_big_endian<uint16_t>(&bytes[14]);
    capacity.provisioning_management = (flags & 0x8000) != 0;
    capacity.unmapped_reads_zeros = (flags & 0x4000) != 0;
    capacity.lowest_aligned_lba = flags & 0x3fff;
  }
  return checked(capacity, load_big_endian<uint64_t>(&bytes[0]));
}

}  // namespace vjbod::scsi
