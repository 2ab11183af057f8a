// SPDX-License-Identifier: Apache-2.0
// Memory for copies that are made and freed in the same order. Allocated when first used, never
// larger than its capacity. Pure; one connection's, on its thread.
#pragma once

#include <cstdint>
#include <memory>

#include "common/base/bytes.h"

namespace vjbod::transport {

class ByteRing {
 public:
  explicit ByteRing(size_t capacity_bytes) : capacity_(capacity_bytes) {}

  // Empty when there is no room. 0 < size.
  Bytes allocate(size_t size) {
    const size_t at = static_cast<size_t>(head_ % capacity_);
    const size_t skipped = at + size > capacity_ ? capacity_ - at : 0;  // one span must not wrap
    if (size > capacity_ || head_ + skipped + size - tail_ > capacity_) return {};
    if (memory_ == nullptr) memory_ = std::make_unique_for_overwrite<std::byte[]>(capacity_);
    head_ += skipped + size;
    return {memory_.get() + (head_ - size) % capacity_, size};
  }
  // Where the ring stands after the last allocate(); release() frees everything up to there.
  uint64_t mark() const { return head_; }
  void release(uint64_t mark) { tail_ = mark; }

 private:
  const size_t capacity_;
  std::unique_ptr<std::byte[]> memory_;
  uint64_t head_ = 0;  // bytes ever allocated, and those freed
  uint64_t tail_ = 0;
};

}  // namespace vjbod::transport
