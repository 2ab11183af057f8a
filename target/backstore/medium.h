// SPDX-License-Identifier: Apache-2.0
// An open file or block device, and the system calls that an op on it comes down to. What file and
// block backstores have in common.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "target/backstore/backstore.h"
#include "target/backstore/unique_fd.h"

namespace vjbod::backstore {

// Shared by the backstore and its queues on all shards; what is not atomic never changes after
// opening.
struct Medium {
  Medium();
  ~Medium();
  Medium(const Medium&) = delete;
  Medium& operator=(const Medium&) = delete;

  std::string path;
  UniqueFd data;
  bool read_only = false;
  bool direct = false;               // opened with O_DIRECT
  uint32_t memory_alignment = 4096;  // of buffers, with O_DIRECT
  bool in_memory = false;            // tmpfs: no call on it waits for a device
  bool can_punch_hole = false;
  bool can_zero_range = false;
  bool keep_allocated = false;  // thick: nothing is given back
  bool use_io_uring = true;
  std::byte* zeros = nullptr;  // zero_bytes of them, read-only

  std::atomic<uint64_t> size_bytes = 0;
  // The kernel reports lost writes to one flush only and then forgets them, so the first error
  // stays here: no later flush may claim that everything is on stable storage. Cleared by opening
  // again.
  std::atomic<int> flush_error = 0;
  // Ops of all shards that are with the kernel or a worker right now.
  std::atomic<uint32_t> slow_ops = 0;

  // Opens a second description of the same file for one queue's flushes: each description is told
  // once about lost writes, so that what a FUA write or another shard was told is not missed here.
  Result<UniqueFd> open_for_flush() const;
};

inline constexpr size_t zero_bytes = size_t{1} << 20;

// One system call. An op takes one or more.
struct Step {
  enum class Call : uint8_t { read, write, fdatasync, fallocate };
  Call call = Call::read;
  std::byte* memory = nullptr;
  uint32_t length_bytes = 0;  // read, write
  uint64_t range_bytes = 0;   // fallocate
  uint64_t offset_bytes = 0;
  int flags = 0;  // RWF_… or FALLOC_FL_…
};

// What to do next for an op, from its kind and its notes.
Step plan_step(const Medium& medium, const Op& op);

// Carries a step out on this thread, waiting for as long as it takes. A count or -errno.
int run_step(const Medium& medium, int flush_fd, const Step& step);

}  // namespace vjbod::backstore
