// SPDX-License-Identifier: Apache-2.0
// Page-aligned I/O memory of one shard: fixed slabs in a few size classes, reused without
// allocation, bounded in total, and given back to the kernel when idle. Where a directory is given,
// a data mover finds the slabs there and can register each once (RDMA).
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "common/base/bytes.h"
#include "common/runtime/slab_directory.h"

namespace vjbod {

class BufferPool;

// A slab on loan. Returns itself on destruction, on the pool's shard. Movable, empty after a move.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  // At least the size asked for; the content is whatever was there before, so never send what was
  // not written.
  Bytes bytes() const { return bytes_; }
  explicit operator bool() const { return pool_ != nullptr; }
  void reset();

 private:
  friend class BufferPool;
  Buffer(BufferPool& pool, Bytes bytes, size_t size_class)
      : pool_(&pool), bytes_(bytes), size_class_(size_class) {}

  BufferPool* pool_ = nullptr;
  Bytes bytes_;
  size_t size_class_ = 0;
};

class BufferPool {
 public:
  static constexpr std::array<size_t, 4> class_bytes = {size_t{4} << 10, size_t{64} << 10,
                                                        size_t{256} << 10, size_t{1} << 20};
  static constexpr size_t slab_bytes_max = class_bytes.back();

  // `directory` outlives the pool; its thread is the pool's.
  explicit BufferPool(size_t memory_max_bytes, SlabDirectory* directory = nullptr);
  ~BufferPool();  // every buffer must have come back
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // An empty Buffer when the limit is reached: the caller answers "busy", it does not wait. size <=
  // slab_bytes_max.
  Buffer acquire(size_t size_bytes);
  // Gives free slabs back to the kernel, keeping `keep_bytes`. Call when idle.
  void trim(size_t keep_bytes);

  size_t lent_bytes() const { return lent_bytes_; }
  size_t held_bytes() const { return held_bytes_; }

 private:
  friend class Buffer;
  void give_back(std::byte* slab, size_t size_class);

  size_t memory_max_bytes_;
  SlabDirectory* directory_;
  size_t lent_bytes_ = 0;
  size_t held_bytes_ = 0;                                // lent and free
  std::array<size_t, class_bytes.size()> slab_count_{};  // lent and free
  std::array<std::vector<std::byte*>, class_bytes.size()> free_;
};

}  // namespace vjbod
