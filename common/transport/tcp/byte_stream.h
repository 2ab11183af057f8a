// SPDX-License-Identifier: Apache-2.0
// The few things that a TCP mover needs of a socket, so that it can be tested without one.
// Readiness, not completion: nothing ever reads or writes the caller's memory outside of a call.
// Owned by its mover, on the mover's reactor thread.
#pragma once

#include <span>
#include <string>

#include <sys/uio.h>

#include "common/base/bytes.h"

namespace vjbod::transport {

struct IoResult {
  enum class Kind : uint8_t {
    moved,        // `bytes`, at least one
    would_block,  // nothing now
    ended,        // reading only: the peer sends no more
    failed,       // `error_number`
  };
  Kind kind = Kind::would_block;
  size_t bytes = 0;
  int error_number = 0;
};

class ByteStreamEvents {
 public:
  // One for each wait; never from inside a call, and none after close().
  virtual void on_readable() = 0;
  virtual void on_writable() = 0;

 protected:
  ~ByteStreamEvents() = default;
};

class ByteStream {
 public:
  virtual ~ByteStream() = default;

  virtual void set_events(ByteStreamEvents& events) = 0;
  // Fills `first`, then `second`. Fewer bytes than asked for means that no more are there now.
  virtual IoResult read_some(Bytes first, Bytes second) = 0;
  virtual IoResult write_some(std::span<const iovec> pieces) = 0;
  // Also when there is something to read (or to write into) already. Waiting twice is waiting once.
  virtual void wait_readable() = 0;
  virtual void wait_writable() = 0;
  // The peer sees the end of the stream after what was written.
  virtual void shutdown_send() = 0;
  virtual void close() = 0;

  virtual std::string peer() const = 0;
  virtual std::string local() const = 0;
};

}  // namespace vjbod::transport
