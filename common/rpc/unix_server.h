// SPDX-License-Identifier: Apache-2.0
// The local control server: a Unix socket of mode 0600, open to root and to the daemon's own user.
// Accepts itself, because gRPC hides the descriptor and so the credentials of the caller
// (SO_PEERCRED); a connection that passes is handed to gRPC. Lives on the reactor given.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/impl/service_type.h>

#include "common/base/result.h"
#include "common/rpc/server.h"
#include "common/runtime/reactor.h"

namespace vjbod::rpc {

class UnixServer {
 public:
  // Makes the socket's folder (mode 0755) when it is missing. A socket that nobody listens on any
  // more is replaced; one that somebody listens on, or a file of another kind, is an error.
  static Result<std::unique_ptr<UnixServer>> start(Reactor& reactor, const std::string& path,
                                                   const std::vector<grpc::Service*>& services);
  ~UnixServer();

  // Removes the socket and stops. `done` comes on the reactor.
  void stop(Duration grace, std::function<void()> done);

 private:
  struct Impl;
  explicit UnixServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace vjbod::rpc
