// SPDX-License-Identifier: Apache-2.0
#include "target/backstore/memory_backstore.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

#include "target/backstore/completion_queue.h"
#include "target/backstore/errc.h"

namespace vjbod::backstore {

namespace {

uint64_t page_bytes() {
  return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

uint64_t round_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

class MemoryQueue final : public BackstoreQueue {
 public:
  MemoryQueue(MemoryBackstore& backstore, Reactor& reactor)
      : backstore_(backstore), page_bytes_(page_bytes()), completions_(reactor) {}

  void submit(Op& op) override {
    op.notes = {};
    completions_.add(op, carry_out(op));
  }

 private:
  int carry_out(Op& op) {
    if (op.kind == OpKind::flush) return 0;
    uint64_t size_bytes = backstore_.geometry().size_bytes;
    VJBOD_CHECK(op.length_bytes <= size_bytes && op.offset_bytes <= size_bytes - op.length_bytes,
                "{} of {} bytes at {} is beyond the end at {}", name_of(op.kind), op.length_bytes,
                op.offset_bytes, size_bytes);
    if (op.length_bytes == 0) return 0;
    std::byte* place = backstore_.memory() + op.offset_bytes;
    switch (op.kind) {
      case OpKind::read: std::memcpy(op.data.data(), place, op.data.size()); return 0;
      case OpKind::write: std::memcpy(place, op.data.data(), op.data.size()); return 0;
      case OpKind::unmap: return give_back(place, op.length_bytes);
      case OpKind::write_zeroes:
        if (op.may_unmap) return give_back(place, op.length_bytes);
        std::memset(place, 0, op.length_bytes);
        return 0;
      case OpKind::flush: break;
    }
    return 0;
  }

  // Whole pages go back to the kernel, which gives zeros for them; the rest is cleared.
  int give_back(std::byte* place, uint64_t length) {
    auto start = reinterpret_cast<uintptr_t>(place);
    uint64_t head = std::min(round_up(start, page_bytes_) - start, length);
    uint64_t pages = (length - head) / page_bytes_ * page_bytes_;
    std::memset(place, 0, head);
    if (pages != 0 && ::madvise(place + head, pages, MADV_DONTNEED) != 0) return errno;
    std::memset(place + head + pages, 0, length - head - pages);
    return 0;
  }

  MemoryBackstore& backstore_;
  const uint64_t page_bytes_;
  CompletionQueue completions_;
};

}  // namespace

Result<std::shared_ptr<Backstore>> MemoryBackstore::open(const BackstoreConfig& config) {
  uint64_t reserved_bytes = round_up(config.size_bytes, page_bytes()) + growth_max_bytes;
  void* memory = ::mmap(nullptr, reserved_bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    int error = errno;
    return fail(errc_of(error), "cannot reserve {} bytes of address space for a memory LUN: {}",
                reserved_bytes, system_code(error).message());
  }
  auto backstore = std::shared_ptr<MemoryBackstore>(
      new MemoryBackstore(static_cast<std::byte*>(memory), reserved_bytes, config));
  if (Status grown = backstore->resize(config.size_bytes); !grown) return fail(grown.error());
  return backstore;
}

MemoryBackstore::MemoryBackstore(std::byte* memory, uint64_t reserved_bytes,
                                 const BackstoreConfig& config)
    : memory_(memory),
      reserved_bytes_(reserved_bytes),
      block_bytes_(config.block_bytes),
      read_only_(config.read_only),
      size_bytes_(0) {}

MemoryBackstore::~MemoryBackstore() {
  ::munmap(memory_, reserved_bytes_);
}

Geometry MemoryBackstore::geometry() const {
  return {.size_bytes = size_bytes_.load(std::memory_order_acquire), .block_bytes = block_bytes_};
}

BackstoreCapabilities MemoryBackstore::capabilities() const {
  return {.read_only = read_only_,
          .volatile_cache = false,
          .outlives_process = false,
          .native_fua = true,
          .unmap = !read_only_,
          .fast_write_zeroes = true,
          .description = "memory, lost when the daemon ends"};
}

uint64_t MemoryBackstore::allocated_bytes() const {
  std::array<unsigned char, 4096> resident;
  uint64_t page = page_bytes();
  uint64_t pages = round_up(geometry().size_bytes, page) / page;
  uint64_t used = 0;
  for (uint64_t first = 0; first < pages; first += resident.size()) {
    uint64_t count = std::min<uint64_t>(resident.size(), pages - first);
    if (::mincore(memory_ + first * page, count * page, resident.data()) != 0) return 0;
    used += static_cast<uint64_t>(
        std::count_if(resident.begin(), resident.begin() + static_cast<ptrdiff_t>(count),
                      [](unsigned char flags) { return (flags & 1) != 0; }));
  }
  return used * page;
}

Result<std::unique_ptr<BackstoreQueue>> MemoryBackstore::open_queue(Reactor& reactor) {
  return std::make_unique<MemoryQueue>(*this, reactor);
}

Status MemoryBackstore::resize(uint64_t size_bytes) {
  uint64_t old_bytes = geometry().size_bytes;
  if (size_bytes < old_bytes || size_bytes % block_bytes_ != 0)
    return fail(Errc::size,
                "a memory LUN of {} bytes cannot become {} bytes: it only grows, by blocks of {}",
                old_bytes, size_bytes, block_bytes_);
  if (size_bytes > reserved_bytes_)
    return fail(Errc::size, "a memory LUN cannot grow to {} bytes, its limit is {}", size_bytes,
                reserved_bytes_);
  if (::mprotect(memory_, round_up(size_bytes, page_bytes()), PROT_READ | PROT_WRITE) != 0) {
    int error = errno;
    return fail(errc_of(error), "cannot map {} bytes for a memory LUN: {}", size_bytes,
                system_code(error).message());
  }
  size_bytes_.store(size_bytes, std::memory_order_release);
  return {};
}

}  // namespace vjbod::backstore
