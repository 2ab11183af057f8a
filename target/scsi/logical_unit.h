// SPDX-License-Identifier: Apache-2.0
// A LUN as every initiator sees it: identity, backstore, write protection. Shared by all shards.
// What can change while it is in use lives elsewhere: the size in the backstore, the task sets and
// unit attentions in each nexus. Which nexuses use it is known on its home reactor only; a reset or
// a new size reaches them by messages from there, so no I/O takes a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/runtime/reactor.h"
#include "target/backstore/backstore.h"

namespace vjbod::scsi {

class NexusMailbox;
class ResetBarrier;

using UnitUuid = std::array<std::byte, 16>;

// What initiators know a LUN by, from its UUID.
// NAA designator of type 3, locally assigned: 60 random bits (SPC-4 7.8.6.6.4).
uint64_t naa_of(const UnitUuid& uuid);
// 16 hexadecimal digits, from the half that the NAA does not use.
std::string serial_of(const UnitUuid& uuid);

class LogicalUnit : public std::enable_shared_from_this<LogicalUnit> {
 public:
  struct Options {
    UnitUuid uuid{};         // random, made when the LUN was created and stored with it
    bool read_only = false;  // for everybody; a backstore that is read-only makes it so too
    // Another one when acknowledged writes that were not flushed may be lost; see
    // common/scsi/cache_id_page.h. Empty: not told.
    std::string cache_id{};
    std::shared_ptr<backstore::Backstore> backstore;
    Reactor* home = nullptr;  // outlives the unit and every nexus
  };

  // Any thread.
  static std::shared_ptr<LogicalUnit> make(Options options);
  LogicalUnit(const LogicalUnit&) = delete;
  LogicalUnit& operator=(const LogicalUnit&) = delete;

  // --- any thread ---
  const UnitUuid& uuid() const { return uuid_; }
  uint64_t naa() const { return naa_of(uuid_); }
  std::string serial() const { return serial_of(uuid_); }
  bool read_only() const { return read_only_; }
  const std::string& cache_id() const { return cache_id_; }
  backstore::Backstore& backstore() const { return *backstore_; }

  // Grows the backstore, then tells every nexus (unit attention 2A/09). Any thread but not twice at
  // a time.
  vjbod::Status resize(uint64_t size_bytes);
  // The same message for a backstore that grew by itself.
  void announce_capacity_change();

  // After a flush failed, bytes that were acknowledged may be lost, and the kernel reports it once:
  // every later flush, by anybody, must fail too until the LUN is opened anew. The first error
  // stays; empty while there is none.
  std::error_code flush_error() const;
  void set_flush_error(std::error_code error);

  // --- for Nexus; any thread, takes effect on the home reactor ---
  void attach(std::shared_ptr<NexusMailbox> nexus);
  void detach(std::shared_ptr<NexusMailbox> nexus);
  // Resets the unit at every attached nexus but `origin`. The barrier is held until their tasks are
  // gone.
  void reset_others(std::shared_ptr<NexusMailbox> origin, std::shared_ptr<ResetBarrier> barrier);

 private:
  explicit LogicalUnit(Options options);

  const UnitUuid uuid_;
  const bool read_only_;
  const std::string cache_id_;
  const std::shared_ptr<backstore::Backstore> backstore_;
  Reactor& home_;
  std::atomic<int> flush_errno_{0};
  std::vector<std::shared_ptr<NexusMailbox>> nexuses_;  // home reactor only
};

}  // namespace vjbod::scsi
