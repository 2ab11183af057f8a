// SPDX-License-Identifier: Apache-2.0
// One NBD client: its socket, its deadlines and its end. Handshake and requests are decided in
// nbd_handshake and nbd_transmission; here is when to receive, when to send and when to close.
// Made, used and destroyed on its own shard's thread, which need not be the disk's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/log.h"
#include "common/runtime/asio_reactor.h"
#include "common/runtime/handler_memory.h"
#include "initiator/frontend/device_port.h"
#include "initiator/frontend/nbd_handshake.h"
#include "initiator/frontend/nbd_transmission.h"

namespace vjbod::initiator::nbd {

class Connection;

class ConnectionOwner {
 public:
  // The last upcall: the socket is closed and every request is back. Destroy it from a later turn,
  // and see DevicePort for how.
  virtual void on_connection_finished(Connection& connection) = 0;

 protected:
  ~ConnectionOwner() = default;
};

struct ConnectionOptions {
  Export exported;
  // From connect to the choice of the export, not counting the wait below.
  Duration handshake_time_max = std::chrono::seconds(15);
  // How long a client that has chosen waits for the size of a disk that was never reached yet.
  Duration geometry_wait_max = std::chrono::seconds(30);
  // How long requests under way may take to be answered once the export ends.
  Duration stop_grace = std::chrono::seconds(1);
  // Memory is given back when nothing was asked for so long.
  Duration idle_after = std::chrono::seconds(2);
};

class Connection final : public Deferred {
 public:
  // Takes over `fd`, connected and non-blocking. `home` is the disk's reactor, `here` the
  // connection's. `options` and `owner` outlive it.
  Connection(int fd, std::string log_prefix, BlockDevice& device, AsioReactor& home,
             AsioReactor& here, const ConnectionOptions& options, ConnectionOwner& owner);
  ~Connection();  // only after on_connection_finished, or before start()

  void start();
  // What clients are told until they have chosen.
  void set_geometry(const BlockGeometry& geometry);
  // The export ends: no new requests; replies still go out for stop_grace; then the socket closes.
  void stop();
  // The client has closed its end, though requests of it may still be under way, or unread.
  bool client_gone() const;
  // As stop(), without a word about what is not answered yet; the socket is closed on return.
  void hang_up();

 private:
  // Sending more often than receiving in one turn would let one client starve the others.
  static constexpr int receives_per_turn = 8;
  static constexpr size_t parts_per_send = 256;  // iovecs
  // More than the kernel's default, so that a large read reply needs fewer wake-ups.
  static constexpr int socket_send_bytes = 1 << 20;

  struct Socket;
  struct ReadReady;
  struct WriteReady;

  void progress_handshake();
  bool send_handshake_output();  // false: not all of it is out
  void begin_transmission();
  void receive_handshake();
  void receive_requests();
  void send_replies();
  void run_deferred() override;

  void wait_readable();
  void wait_writable();
  void on_readable();
  void on_writable();
  void on_deadline();
  void on_idle_check();

  // The client is gone or no longer wanted: requests under way go on, replies are dropped.
  void close_socket();
  void close_if_over();
  void finish_if_over();
  bool failed(int errno_value);  // logs what is not an ordinary disconnect

  BlockDevice& device_;
  AsioReactor& home_;
  AsioReactor& here_;
  const ConnectionOptions& options_;
  ConnectionOwner& owner_;
  PrefixLogger log_;

  const std::unique_ptr<Socket> socket_;
  HandlerMemory read_wait_memory_;
  HandlerMemory write_wait_memory_;
  bool read_waits_ = false;
  bool write_waits_ = false;
  bool stopping_ = false;
  bool finished_ = false;
  Timer deadline_;
  Timer idle_check_;

  std::optional<Handshake> handshake_;
  std::vector<std::byte> handshake_input_;
  std::optional<Transmission> transmission_;
  std::optional<DevicePort> port_;
  uint64_t requests_at_last_check_ = 0;
};

}  // namespace vjbod::initiator::nbd
