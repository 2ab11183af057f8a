// SPDX-License-Identifier: Apache-2.0
// The parameter list of UNMAP (SBC-3 5.28.2): written by the initiator, read in place by the
// target, which has no memory to copy it to. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/scsi/errc.h"

namespace vjbod::scsi {

struct UnmapRange {
  uint64_t lba = 0;
  uint32_t blocks = 0;
  bool operator==(const UnmapRange&) const = default;
};

inline constexpr size_t unmap_header_bytes = 8;
inline constexpr size_t unmap_descriptor_bytes = 16;
inline constexpr size_t unmap_list_bytes(size_t ranges) {
  return unmap_header_bytes + unmap_descriptor_bytes * ranges;
}

void build_unmap_list(std::span<const UnmapRange> ranges, ByteWriter& out);

// A view of a received list; the bytes must stay while it is used.
class UnmapList {
 public:
  // The header's lengths must agree with each other and with what came; a descriptor that is cut
  // short at the end is ignored, as the standard says.
  static Result<UnmapList> parse(ConstBytes bytes);

  static UnmapList none() { return UnmapList({}); }

  size_t size() const { return descriptors_.size() / unmap_descriptor_bytes; }
  UnmapRange operator[](size_t index) const;

 private:
  explicit UnmapList(ConstBytes descriptors) : descriptors_(descriptors) {}
  ConstBytes descriptors_;
};

}  // namespace vjbod::scsi
