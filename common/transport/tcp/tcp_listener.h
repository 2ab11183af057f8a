// SPDX-License-Identifier: Apache-2.0
// Accepts TCP connections on one reactor and hands the bare sockets out, so that the owner can look
// at the peer's address, refuse (by dropping the socket), and choose the shard that a mover is to
// live on: post make_tcp_mover() there.
#pragma once

#include <memory>
#include <string>

#include "common/runtime/asio_reactor.h"
#include "common/transport/connector.h"
#include "common/transport/tcp/socket.h"

namespace vjbod::transport {

struct AcceptedSocket {
  Socket socket;
  std::string peer_address;  // "10.0.0.2": for caps per address
  std::string peer;          // "10.0.0.2:51234"
};

class TcpListenerEvents {
 public:
  virtual void on_accepted(AcceptedSocket accepted) = 0;
  // Accepting failed for a reason of this machine (no descriptors left, no memory). It goes on
  // after `accept_retry`; at most one call per pause.
  virtual void on_accept_trouble(const Error& error) = 0;

 protected:
  ~TcpListenerEvents() = default;
};

class TcpListener final : public Listener {
 public:
  static constexpr int backlog = 256;  // connections that wait in the kernel
  static constexpr int accepts_per_turn_max = 16;
  static constexpr Duration accept_retry = std::chrono::milliseconds(100);

  // `address` is numeric; "::" takes IPv4 too (and becomes 0.0.0.0 where there is no IPv6). Port 0:
  // any. `interface_name`: only connections that came in there; empty: any. On the reactor's
  // thread, as everything here.
  static Result<std::unique_ptr<TcpListener>> open(AsioReactor& reactor, const std::string& address,
                                                   uint16_t port, const std::string& interface_name,
                                                   TcpListenerEvents& events);
  ~TcpListener() override;

  std::string local() const override { return local_; }
  // Backpressure: while paused, connections wait in the kernel's backlog.
  void pause();
  void resume();

 private:
  struct State;

  TcpListener(AsioReactor& reactor, Socket socket, TcpListenerEvents& events);

  std::shared_ptr<State> state_;  // shared with the wait that is pending
  const std::string local_;
};

// On `reactor`'s thread. The role is the target's.
std::unique_ptr<DataMover> make_tcp_mover(AsioReactor& reactor, Socket socket);

}  // namespace vjbod::transport
