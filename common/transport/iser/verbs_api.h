// SPDX-License-Identifier: Apache-2.0
// The few things that iSER needs of an RDMA device and of the connection manager, as an interface:
// verbs.h is the real one over rdma-core, tests have one in memory. A fabric and everything made
// with it live on one reactor, whose thread makes all calls and gets all upcalls; no upcall comes
// from inside a call. Nothing here waits: what takes time is reported by an event.
//
// Memory: a device reads and writes registered memory whenever it likes between posting a request
// and its completion, and a peer whenever a key is valid. After ~Connection or destroy_queue()
// nothing of that connection touches memory any more.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/runtime/clock.h"

namespace vjbod::transport::rdma {

struct DeviceFacts {
  std::string name{};               // "rxe_eth0"
  std::string interface_name{};     // of the local address; empty when the device does not tell
  bool memory_windows = false;      // type 2: bound and invalidated by requests in the queue
  uint32_t queue_requests_max = 0;  // of one direction
  uint64_t region_bytes_max = 0;
  uint32_t message_bytes_max = 0;  // of one write or read
};

enum class Access : uint8_t {
  local,         // the device only, both ways
  remote_read,   // the peer may read; the memory may be read-only
  remote_write,  // the peer may write
  window,        // the device, and windows may be bound to it
};

// Registered memory. Destroying it takes every key back at once.
class Region {
 public:
  virtual ~Region() = default;
  virtual ConstBytes memory() const = 0;
  virtual uint32_t local_key() const = 0;
  virtual uint32_t remote_key() const = 0;
};

// A type 2 memory window. Not bound when made. A new binding needs a key that differs from the last
// one in its low byte: next_window_key().
class Window {
 public:
  virtual ~Window() = default;
  virtual uint32_t first_key() const = 0;
};
constexpr uint32_t next_window_key(uint32_t key) {
  return (key & 0xffffff00u) | ((key + 1) & 0xffu);
}

// A protection domain of one device: regions and windows of it work with connections of it only.
class Domain {
 public:
  virtual ~Domain() = default;
  virtual const DeviceFacts& device() const = 0;
  virtual Result<std::unique_ptr<Region>> register_memory(ConstBytes memory, Access access) = 0;
  virtual Result<std::unique_ptr<Window>> make_window() = 0;
};

struct ReceiveRequest {
  uint64_t id = 0;
  Bytes memory{};
  uint32_t local_key = 0;
};

struct SendRequest {
  enum class Kind : uint8_t {
    send,
    send_with_invalidate,  // and the peer's remote_key becomes invalid
    write,                 // into the peer's memory
    read,                  // from the peer's memory
    bind,                  // gives `window` the key `remote_key` for `memory`, part of `region`
    invalidate,            // of our own window's key
  };
  Kind kind = Kind::send;
  bool signaled = false;
  uint64_t id = 0;
  ConstBytes memory{};  // a read writes to it
  uint32_t local_key = 0;
  uint64_t remote_address = 0;
  uint32_t remote_key = 0;
  Window* window = nullptr;
  const Region* region = nullptr;
  Access access = Access::remote_read;  // bind
};

struct Completion {
  enum class Status : uint8_t {
    success,
    flushed,        // the queue was in error already
    local_length,   // a message longer than the posted memory
    remote_access,  // the peer refused a key, an offset or a direction
    retries,        // the peer does not answer
    receiver_not_ready,
    other,
  };
  Status status = Status::success;
  bool receive = false;
  bool invalidated = false;  // a received message has invalidated `key`
  uint32_t key = 0;
  uint32_t bytes = 0;  // received
  uint64_t id = 0;
  int vendor_status = 0;  // for the log
};

enum class CmEvent : uint8_t {
  address_resolved,
  route_resolved,
  established,
  failed,        // one of the three above will not come: `reason`
  disconnected,  // by the peer, or the connection manager gave it up
  address_changed,
  device_removed,
};
enum class CmFailure : uint8_t {
  none,
  no_device,
  unreachable,
  timed_out,
  nobody_listens,
  refused,
  other,
};
struct CmReport {
  CmEvent event = CmEvent::failed;
  CmFailure failure = CmFailure::none;
  int detail = 0;             // errno or the connection manager's number, for the sentence
  ConstBytes private_data{};  // of the peer; valid during the upcall
};

class ConnectionEvents {
 public:
  virtual void on_cm(const CmReport& report) = 0;
  virtual void on_completions() = 0;  // once for each arm()

 protected:
  ~ConnectionEvents() = default;
};

struct QueueSizes {
  uint32_t sends = 0;
  uint32_t receives = 0;
};

class Connection {
 public:
  virtual ~Connection() = default;
  virtual void set_events(ConnectionEvents* events) = 0;

  // The initiator's way, each step ended by an event. An empty source: any.
  virtual Status resolve_address(const std::string& source, const std::string& address,
                                 uint16_t port, Duration timeout) = 0;
  virtual Status resolve_route(Duration timeout) = 0;
  virtual Status connect(ConstBytes private_data) = 0;
  // The target's way.
  virtual Status accept(ConstBytes private_data) = 0;

  // Once the address is resolved, or for an accepted connection.
  virtual Result<std::shared_ptr<Domain>> domain() = 0;
  virtual DeviceFacts device() const = 0;
  // Before connect() or accept().
  virtual Status make_queue(const QueueSizes& sizes) = 0;
  virtual Status post_receives(std::span<const ReceiveRequest> requests) = 0;
  virtual Status post_sends(std::span<const SendRequest> requests) = 0;
  // Requests of one direction complete in order; an unsignaled one that succeeded is not reported.
  virtual size_t poll(std::span<Completion> into) = 0;
  // One on_completions() for what completes from now on: poll again after this.
  virtual void arm() = 0;
  // Tells the peer, and everything posted completes, most of it flushed.
  virtual void disconnect() = 0;
  // Nothing of this connection touches memory any more. poll() gives nothing from here on.
  virtual void destroy_queue() = 0;

  virtual std::string peer() const = 0;  // "10.0.0.2:51234"
  virtual std::string local() const = 0;
};

// A connect request that nobody has answered yet. Destroying it refuses.
class Incoming {
 public:
  virtual ~Incoming() = default;
  virtual ConstBytes private_data() const = 0;
  virtual std::string peer_address() const = 0;  // without port, for caps per address
  virtual std::string peer() const = 0;
  virtual void refuse(ConstBytes private_data) = 0;
};

class AcceptorEvents {
 public:
  virtual void on_incoming(std::unique_ptr<Incoming> incoming) = 0;
  // The device went away or the address moved: close, and listen anew.
  virtual void on_acceptor_lost(const Error& reason) = 0;

 protected:
  ~AcceptorEvents() = default;
};

class Acceptor {
 public:
  virtual ~Acceptor() = default;
  virtual std::string local() const = 0;
};

class Fabric {
 public:
  virtual ~Fabric() = default;
  virtual Result<std::unique_ptr<Connection>> make_connection() = 0;
  virtual Result<std::unique_ptr<Acceptor>> listen(const std::string& address, uint16_t port,
                                                   int backlog, AcceptorEvents& events) = 0;
  // Makes ready what hand_over() needs on the other side. On the fabric's own thread.
  virtual Status prepare() { return {}; }
  // Moves a request that came here to the fabric of another reactor. Called on this fabric's
  // thread, after prepare() on the other one; then adopt() on the other one's.
  virtual Status hand_over(Incoming& incoming, Fabric& to) = 0;
  virtual std::unique_ptr<Connection> adopt(std::unique_ptr<Incoming> incoming) = 0;
};

}  // namespace vjbod::transport::rdma
