// SPDX-License-Identifier: Apache-2.0
// Where a LUN's bytes are kept. Two objects: a Backstore, immutable after opening and shared by all
// shards, and one BackstoreQueue per shard, which does the I/O. No CDB and no sense here: SCSI is
// checked, and missing features are emulated, in the layer above. Filters (delay, error, trace) are
// backstores that wrap another one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <system_error>

#include "common/base/bytes.h"
#include "common/base/intrusive_list.h"
#include "common/base/result.h"
#include "common/runtime/reactor.h"

namespace vjbod::backstore {

enum class OpKind : uint8_t { read, write, flush, unmap, write_zeroes };
const char* name_of(OpKind kind);

struct Op;

class OpOwner {
 public:
  // Exactly once per submitted op, on the queue's reactor thread, never from inside submit(). The
  // op is the owner's again. `error` is an errno in the system category (EIO, ENOSPC, …) or empty.
  virtual void on_op_done(Op& op, std::error_code error) = 0;

 protected:
  ~OpOwner() = default;
};

// One I/O, owned by the caller and untouched by it from submit() to on_op_done(). May be on one
// list of the backstore meanwhile.
struct Op : ListNode<Op> {
  OpKind kind = OpKind::read;
  // write: the bytes must be on stable storage when done. Given only to a backstore whose
  // `native_fua` is true.
  bool fua = false;
  // write_zeroes: the space may be given back to the pool (reads still give zeros); without it, it
  // must stay allocated.
  bool may_unmap = false;
  uint64_t offset_bytes = 0;
  uint64_t length_bytes = 0;  // not for flush; equals data.size() for read and write
  Bytes data;                 // read: filled in; write: taken from
  OpOwner* owner = nullptr;

  // The backstore's own notes from submit() to on_op_done(); it sets them in submit(), the owner
  // leaves them alone. They save a table, and an allocation, per I/O.
  struct Notes {
    uint64_t done_bytes = 0;      // of a transfer that goes in several steps
    int error_number = 0;         // what on_op_done() will report
    int step_result = 0;          // of a step that another thread carried out
    std::byte* bounce = nullptr;  // aligned stand-in for `data`
    bool write_out = false;       // zeroes must be written byte by byte
    bool retried = false;
  } notes;
};

struct Geometry {
  uint64_t size_bytes = 0;
  uint32_t block_bytes = 512;  // logical: 512 or 4096; every offset and length is a multiple
  uint32_t physical_block_bytes = 4096;
  uint32_t unmap_granularity_bytes = 4096;
};

struct BackstoreCapabilities {
  bool read_only = false;
  bool volatile_cache = true;  // acknowledged writes may be lost at a power cut until a flush
  // Acknowledged writes are with the kernel or on the medium: the end of this process loses none.
  bool outlives_process = true;
  bool native_fua = false;         // else the layer above follows the write with a flush
  bool unmap = false;              // what was unmapped reads as zeros
  bool fast_write_zeroes = false;  // without writing every byte
  // How the I/O is done, for status output: "page cache, io_uring".
  std::string description;
};

// Per shard. Destroy it only when no op is outstanding, and not from inside on_op_done(): post
// that.
class BackstoreQueue {
 public:
  virtual ~BackstoreQueue() = default;
  // Ranges, alignment and read-only were checked by the caller; a violation is a bug and may abort.
  virtual void submit(Op& op) = 0;
};

class Backstore {
 public:
  virtual ~Backstore() = default;
  virtual Geometry geometry() const = 0;  // any thread; the size may grow by resize()
  virtual BackstoreCapabilities capabilities() const = 0;
  virtual uint64_t allocated_bytes()
      const = 0;  // really used in the pool; any thread, may do a system call
  // On the shard of `reactor`, where the queue stays. Fails only for want of kernel resources.
  virtual Result<std::unique_ptr<BackstoreQueue>> open_queue(Reactor& reactor) = 0;
  // Grows only. Any thread but not twice at a time.
  virtual Status resize(uint64_t size_bytes) = 0;
};

}  // namespace vjbod::backstore
