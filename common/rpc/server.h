// SPDX-License-Identifier: Apache-2.0
// The two servers of a daemon: over TLS for other boxes, and on a Unix socket for this box. Owned
// by the daemon's composition root, on its main reactor. Services must outlive the server.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/impl/service_type.h>
#include <grpcpp/server.h>

#include "common/base/result.h"
#include "common/rpc/identity.h"
#include "common/runtime/reactor.h"

namespace vjbod::rpc {

// A server that stops without blocking the reactor that its calls need.
class Server {
 public:
  explicit Server(std::unique_ptr<grpc::Server> server) : server_(std::move(server)) {}
  // Only after stop() has reported, or when no call was ever taken.
  ~Server();

  grpc::Server& grpc() { return *server_; }
  // No new calls; those under way have until the grace to end, then they are cancelled. `done`
  // comes on the reactor. Streams should be ended by their owners before.
  void stop(Reactor& reactor, Duration grace, std::function<void()> done);

 private:
  std::unique_ptr<grpc::Server> server_;
  std::thread stopper_;
  bool stopped_ = false;
};

class PeerServer {
 public:
  // `listen`: "[::]:7443", "10.0.0.2:0". The error names an address that is in use.
  static Result<std::unique_ptr<PeerServer>> start(const std::string& listen,
                                                   const Identity& identity,
                                                   const std::vector<grpc::Service*>& services);
  uint16_t port() const { return port_; }  // the real one, when 0 was asked for
  void stop(Reactor& reactor, Duration grace, std::function<void()> done) {
    server_.stop(reactor, grace, std::move(done));
  }

 private:
  PeerServer(std::unique_ptr<grpc::Server> server, uint16_t port)
      : server_(std::move(server)), port_(port) {}
  Server server_;
  uint16_t port_;
};

}  // namespace vjbod::rpc
