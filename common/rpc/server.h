// SPDX-License-Identifier: Apache-2.0
// The control servers of a daemon: PeerServer over TLS for other boxes, UnixServer (unix_server.h)
// for this box. Owned by the daemon's composition root, on its main reactor. Services must outlive
// the server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/impl/service_type.h>
#include <grpcpp/server.h>

#include "common/base/result.h"
#include "common/rpc/acceptor.h"
#include "common/rpc/identity.h"
#include "common/runtime/reactor.h"

namespace vjbod::rpc {

// A server that stops without blocking the reactor that its calls need.
class Server {
 public:
  // The acceptor's callbacks come on `reactor`.
  static Result<std::unique_ptr<Server>> start(Reactor& reactor, UniqueFd listening,
                                               std::shared_ptr<grpc::ServerCredentials> credentials,
                                               const std::vector<grpc::Service*>& services,
                                               ConnectionTable limits, Acceptor::Identify identify);
  // Waits for calls under way, so only after stop() has reported, or when there were none.
  ~Server();

  // No new connection and no new call; calls under way have until the grace to end, then they are
  // cancelled. `done` comes on the reactor, when the last is gone. Once.
  void stop(Duration grace, std::function<void()> done);

 private:
  explicit Server(Reactor& reactor) : reactor_(reactor) {}

  Reactor& reactor_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Acceptor> acceptor_;
  std::thread stopper_;
};

class PeerServer {
 public:
  static constexpr size_t connections_max = 256;
  static constexpr size_t connections_per_address_max = 32;

  // `listen`: "[::]:7443", "10.0.0.2:0". The error names an address that is in use.
  static Result<std::unique_ptr<PeerServer>> start(Reactor& reactor, const std::string& listen,
                                                   const Identity& identity,
                                                   const std::vector<grpc::Service*>& services);
  uint16_t port() const { return port_; }  // the real one, when 0 was asked for
  void stop(Duration grace, std::function<void()> done) { server_->stop(grace, std::move(done)); }

 private:
  PeerServer(std::unique_ptr<Server> server, uint16_t port)
      : server_(std::move(server)), port_(port) {}

  std::unique_ptr<Server> server_;
  uint16_t port_;
};

}  // namespace vjbod::rpc
