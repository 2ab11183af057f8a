// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/buffer_pool.h"

#include <bit>
#include <utility>

#include <sys/mman.h>

#include "common/base/check.h"

namespace vjbod {

Buffer::Buffer(Buffer&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      bytes_(std::exchange(other.bytes_, {})),
      size_class_(other.size_class_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    reset();
    pool_ = std::exchange(other.pool_, nullptr);
    bytes_ = std::exchange(other.bytes_, {});
    size_class_ = other.size_class_;
  }
  return *this;
}

Buffer::~Buffer() {
  reset();
}

void Buffer::reset() {
  if (pool_ != nullptr) std::exchange(pool_, nullptr)->give_back(bytes_.data(), size_class_);
  bytes_ = {};
}

BufferPool::BufferPool(size_t memory_max_bytes, SlabDirectory* directory)
    : memory_max_bytes_(memory_max_bytes), directory_(directory) {}

BufferPool::~BufferPool() {
  VJBOD_CHECK(lent_bytes_ == 0, "{} bytes of buffers are still lent", lent_bytes_);
  trim(0);
}

Buffer BufferPool::acquire(size_t size_bytes) {
  VJBOD_CHECK(size_bytes <= slab_bytes_max, "a buffer of {} bytes was asked for", size_bytes);
  size_t size_class = 0;
  while (class_bytes[size_class] < size_bytes) ++size_class;
  const size_t slab_bytes = class_bytes[size_class];
  std::byte* slab = nullptr;
  if (!free_[size_class].empty()) {
    slab = free_[size_class].back();
    free_[size_class].pop_back();
  } else {
    if (held_bytes_ + slab_bytes > memory_max_bytes_) trim(memory_max_bytes_ / 2);
    if (held_bytes_ + slab_bytes > memory_max_bytes_) return {};
    void* mapped =
        mmap(nullptr, slab_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return {};
    slab = static_cast<std::byte*>(mapped);
    held_bytes_ += slab_bytes;
    ++slab_count_[size_class];
    free_[size_class].reserve(std::bit_ceil(slab_count_[size_class]));  // for all to come back to
    if (directory_ != nullptr) directory_->add({slab, slab_bytes});
  }
  lent_bytes_ += slab_bytes;
  return Buffer(*this, Bytes(slab, slab_bytes), size_class);
}

void BufferPool::give_back(std::byte* slab, size_t size_class) {
  lent_bytes_ -= class_bytes[size_class];
  free_[size_class].push_back(slab);
}

void BufferPool::trim(size_t keep_bytes) {
  for (size_t size_class = class_bytes.size(); size_class-- > 0;) {
    auto& slabs = free_[size_class];
    while (!slabs.empty() && held_bytes_ > keep_bytes) {
      if (directory_ != nullptr) directory_->remove({slabs.back(), class_bytes[size_class]});
      munmap(slabs.back(), class_bytes[size_class]);
      slabs.pop_back();
      --slab_count_[size_class];
      held_bytes_ -= class_bytes[size_class];
    }
  }
}

}  // namespace vjbod
