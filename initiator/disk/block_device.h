// SPDX-License-Identifier: Apache-2.0
// What a frontend (NBD, later ublk) knows of a disk: a size and one function. Whatever happens to
// the network, the target or the transport happens behind it; a frontend sees a request that takes
// longer, or an errno by the disk's policy.
#pragma once

#include <cstdint>

#include "common/base/bytes.h"
#include "common/base/intrusive_list.h"
#include "common/runtime/reactor.h"

namespace vjbod::initiator {

enum class BlockOperation : uint8_t { read, write, flush, trim, write_zeroes, cache };
const char* name_of(BlockOperation operation);

struct BlockRequest;

class BlockRequestOwner {
 public:
  // Exactly once per submitted request, on the device's reactor thread, never from inside submit().
  // `errno_value` is 0, or EIO, ENOSPC, EROFS (write protected), EINVAL, EOPNOTSUPP, ESHUTDOWN (the
  // disk is being detached).
  virtual void on_request_done(BlockRequest& request, int errno_value) = 0;

 protected:
  ~BlockRequestOwner() = default;
};

// One request, the caller's, untouched by it from submit() to on_request_done(). Its memory is lent
// likewise: after on_request_done no byte of it is read or written by anyone.
struct BlockRequest : ListNode<> {
  BlockOperation operation = BlockOperation::read;
  bool force_unit_access = false;  // write, write_zeroes, trim: on stable storage when done
  bool no_hole = false;            // write_zeroes: the space must stay allocated
  bool fast_only = false;          // write_zeroes: EOPNOTSUPP rather than zeros over the wire
  uint64_t offset_bytes = 0;       // multiples of the block size, inside the device; not for flush
  uint64_t length_bytes = 0;  // any multiple: the disk splits what the target cannot take at once
  Bytes data;                 // read: filled in; write: taken from; length_bytes long
  BlockRequestOwner* owner = nullptr;

  // The device's own notes while the request is submitted.
  struct Progress {
    uint64_t cut_bytes = 0;  // handed on, as commands
    uint32_t pieces = 0;     // under way
    int errno_value = 0;     // the first error
    bool flushing = false;   // the last step of a request that must be on stable storage
    TimePoint submitted_at{}, issued_at{};
  };
  Progress progress;
};

// As the target has told. All lengths in bytes; a zero limit means "none known".
struct BlockGeometry {
  uint64_t size_bytes = 0;
  uint32_t block_bytes = 512;
  uint32_t physical_block_bytes = 512;
  uint64_t transfer_bytes_max = 0;  // what goes in one command; larger requests are split
  uint64_t transfer_bytes_optimal = 0;
  bool read_only = false;
  bool volatile_cache = true;     // a flush means something
  bool force_unit_access = true;  // native; else the disk adds a flush
  bool trim = false;
  uint64_t trim_granularity_bytes = 0;
  uint64_t trim_bytes_max = 0;
  bool write_zeroes = false;
  bool fast_write_zeroes = false;  // without moving the zeros over the wire
};

class BlockDeviceObserver {
 public:
  // The geometry is known now, or has grown. On the device's reactor thread.
  virtual void on_geometry(const BlockGeometry& geometry) = 0;

 protected:
  ~BlockDeviceObserver() = default;
};

class BlockDevice {
 public:
  virtual Reactor& reactor() = 0;  // any thread; all other calls on its thread
  // False until the first connect has probed the target (a restarted daemon knows it from its
  // state).
  virtual bool geometry_known() const = 0;
  virtual BlockGeometry geometry() const = 0;
  virtual void submit(BlockRequest& request) = 0;
  virtual void add_observer(BlockDeviceObserver& observer) = 0;
  virtual void remove_observer(BlockDeviceObserver& observer) = 0;

 protected:
  ~BlockDevice() = default;
};

}  // namespace vjbod::initiator
