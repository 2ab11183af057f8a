// SPDX-License-Identifier: Apache-2.0
// What is acknowledged and not flushed, and in which cache of the target it lies, so that a daemon
// that was ended at any instant knows it at its next start. Without it, a restart of the daemon at
// the same time as one of the target's machine would hide that acknowledged writes are lost.
//
// A small file that is mapped into memory: what is stored there is the kernel's at once and
// outlives this process, at the price of a store per command and no system call. It does not
// outlive this machine, and must not: with the machine went everybody who was told that a write is
// done, and nobody may count on more than what was flushed. A record of an earlier start of the
// machine therefore means nothing, wherever the file lies.
//
// Owned by a disk, on its thread; opened by anybody.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace vjbod::initiator {

class UnflushedRecord {
 public:
  static constexpr size_t cache_id_bytes_max = 63;

  // In the memory of this process alone.
  UnflushedRecord();
  // The file is made when there is none, and begun anew when it is of another start of the machine
  // or none of ours. `boot_id`: kernel_boot_id().
  static Result<UnflushedRecord> open(const std::string& path, const std::string& boot_id);

  std::string_view cache_id() const;  // empty: none is known
  void set_cache_id(std::string_view id);

  uint64_t writes_completed() const;  // into a volatile cache
  uint64_t unflushed() const;         // of those, not covered by a flush
  void write_completed();
  // A flush that was issued after `writes` were completed has succeeded.
  void flushed(uint64_t writes);
  // What is not flushed is accepted as lost.
  void forget_unflushed() { flushed(writes_completed()); }

 private:
  struct Page;
  using PageMemory = std::unique_ptr<Page, void (*)(Page*)>;
  explicit UnflushedRecord(PageMemory page) : page_(std::move(page)) {}

  PageMemory page_;
};

}  // namespace vjbod::initiator
