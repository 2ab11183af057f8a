// SPDX-License-Identifier: Apache-2.0
// The local control server: a Unix socket of mode 0600, open to root and to the daemon's own user
// (SO_PEERCRED is checked for every connection). Lives on the reactor given. Services must outlive
// it.
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
  static constexpr size_t connections_max = 128;

  // Makes the socket's folder (mode 0755) when it is missing. A socket that nobody listens on any
  // more is replaced; one that somebody listens on, or a file of another kind, is an error.
  static Result<std::unique_ptr<UnixServer>> start(Reactor& reactor, const std::string& path,
                                                   const std::vector<grpc::Service*>& services);

  // Removes the socket and stops, as Server::stop().
  void stop(Duration grace, std::function<void()> done);

 private:
  UnixServer(std::unique_ptr<Server> server, std::string path)
      : server_(std::move(server)), path_(std::move(path)) {}

  std::unique_ptr<Server> server_;
  std::string path_;
};

}  // namespace vjbod::rpc
