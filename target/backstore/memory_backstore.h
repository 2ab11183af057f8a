// SPDX-License-Identifier: Apache-2.0
// A LUN in anonymous memory, for tests and benchmarks: everything is gone with the process. Every
// op is done inside submit(), on the shard; only its completion is deferred.
#pragma once

#include <atomic>

#include "target/backstore/config.h"

namespace vjbod::backstore {

class MemoryBackstore final : public Backstore {
 public:
  // Growing must not move the memory under other shards' I/O, so address space (not memory) for
  // this much growth is reserved at the start.
  static constexpr uint64_t growth_max_bytes = uint64_t{64} << 30;

  static Result<std::shared_ptr<Backstore>> open(const BackstoreConfig& config);
  ~MemoryBackstore() override;
  MemoryBackstore(const MemoryBackstore&) = delete;
  MemoryBackstore& operator=(const MemoryBackstore&) = delete;

  Geometry geometry() const override;
  BackstoreCapabilities capabilities() const override;
  uint64_t allocated_bytes() const override;
  Result<std::unique_ptr<BackstoreQueue>> open_queue(Reactor& reactor) override;
  Status resize(uint64_t size_bytes) override;

  std::byte* memory() const { return memory_; }

 private:
  MemoryBackstore(std::byte* memory, uint64_t reserved_bytes, const BackstoreConfig& config);

  std::byte* const memory_;
  const uint64_t reserved_bytes_;
  const uint32_t block_bytes_;
  const bool read_only_;
  std::atomic<uint64_t> size_bytes_;
};

}  // namespace vjbod::backstore
