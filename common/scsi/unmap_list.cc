// SPDX-License-Identifier: Apache-2.0
#include "common/scsi/unmap_list.h"

#include "common/base/check.h"

namespace vjbod::scsi {

void build_unmap_list(std::span<const UnmapRange> ranges, ByteWriter& out) {
  const size_t descriptors = unmap_descriptor_bytes * ranges.size();
  VJBOD_CHECK(descriptors <= 0xffff - unmap_header_bytes, "{} ranges in one UNMAP", ranges.size());
  // The UNMAP DATA LENGTH does not count itself.
  out.u16(static_cast<uint16_t>(descriptors + 6)).u16(static_cast<uint16_t>(descriptors)).u32(0);
  for (const UnmapRange& range : ranges) out.u64(range.lba).u32(range.blocks).u32(0);
}

Result<UnmapList> UnmapList::parse(ConstBytes bytes) {
  if (bytes.size() < unmap_header_bytes) {
    return fail(Errc::short_data, "an UNMAP list of {} bytes, at least {} are needed", bytes.size(),
                unmap_header_bytes);
  }
  const size_t data_length = load_big_endian<uint16_t>(&bytes[0]);
  const size_t descriptor_length = load_big_endian<uint16_t>(&bytes[2]);
  if (descriptor_length == 0) return none();
  if (data_length + 2 > bytes.size()) {
    return fail(Errc::bad_data, "an UNMAP list of {} bytes says that it has {}", bytes.size(),
                data_length + 2);
  }
  if (unmap_header_bytes + descriptor_length > data_length + 2) {
    return fail(Errc::bad_data, "an UNMAP list says {} bytes of descriptors in {} bytes",
                descriptor_length, data_length + 2);
  }
  const size_t whole = descriptor_length - descriptor_length % unmap_descriptor_bytes;
  return UnmapList(bytes.subspan(unmap_header_bytes, whole));
}

UnmapRange UnmapList::operator[](size_t index) const {
  VJBOD_CHECK(index < size());
  const std::byte* from = descriptors_.data() + index * unmap_descriptor_bytes;
  return {load_big_endian<uint64_t>(from), load_big_endian<uint32_t>(from + 8)};
}

}  // namespace vjbod::scsi
