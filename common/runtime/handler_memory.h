// SPDX-License-Identifier: Apache-2.0
// Fixed memory for one Asio operation at a time, so that waiting on a descriptor or waking another
// reactor allocates nothing. Give the handler an allocator_type of HandlerAllocator<> that points
// here.
#pragma once

#include <array>
#include <cstddef>

#include "common/base/check.h"

namespace vjbod {

class HandlerMemory {
 public:
  HandlerMemory() = default;
  HandlerMemory(const HandlerMemory&) = delete;
  HandlerMemory& operator=(const HandlerMemory&) = delete;

  void* take(size_t size_bytes) {
    VJBOD_CHECK(!taken_ && size_bytes <= storage_.size(),
                "an operation of {} bytes does not fit or another one is under way", size_bytes);
    taken_ = true;
    return storage_.data();
  }
  void give_back() { taken_ = false; }

 private:
  alignas(std::max_align_t) std::array<std::byte, 256> storage_;  // Asio's wait takes about 120
  bool taken_ = false;
};

template <typename T = void>
class HandlerAllocator {
 public:
  using value_type = T;

  explicit HandlerAllocator(HandlerMemory& memory) : memory_(&memory) {}
  template <typename U>
  HandlerAllocator(const HandlerAllocator<U>& other) : memory_(other.memory_) {}

  T* allocate(size_t count) const { return static_cast<T*>(memory_->take(count * sizeof(T))); }
  void deallocate(T*, size_t) const { memory_->give_back(); }

  template <typename U>
  bool operator==(const HandlerAllocator<U>& other) const {
    return memory_ == other.memory_;
  }

 private:
  template <typename>
  friend class HandlerAllocator;
  HandlerMemory* memory_;
};

}  // namespace vjbod
