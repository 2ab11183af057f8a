// SPDX-License-Identifier: Apache-2.0
// Accepts connections for a gRPC server, because gRPC itself has no limit on them, shares a port
// that somebody else listens on (SO_REUSEPORT), and hides the credentials of a Unix socket's
// caller. Lives on the reactor given; destroying it closes the listening socket.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <grpcpp/server_builder.h>

#include "common/base/result.h"
#include "common/base/unique_fd.h"
#include "common/rpc/connection_table.h"
#include "common/runtime/reactor.h"

namespace vjbod::rpc {

// A listening, non-blocking socket. The error says which address is in use.
Result<UniqueFd> listen_on_tcp(const std::string& listen);
// Mode 0600 from the first moment. See UnixServer::start for what happens to an old socket.
Result<UniqueFd> listen_on_unix(const std::string& path);
uint16_t local_port(int fd);

class Acceptor {
 public:
  using Sink = std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>;
  // Says whose connection it is, for the limit per address; an error refuses it.
  using Identify = std::function<Result<std::string>(int fd)>;

  // A limit that is reached is logged so often, however many connections it keeps out.
  static constexpr Duration limit_told_interval = std::chrono::minutes(1);

  Acceptor(Reactor& reactor, UniqueFd listening, Sink sink, ConnectionTable limits,
           Identify identify);

 private:
  void accept_all();
  void hand_over(UniqueFd connection);
  void refuse_one();
  void note_limit(const std::string& who);

  Reactor& reactor_;
  UniqueFd listening_;
  Sink sink_;
  ConnectionTable connections_;
  Identify identify_;
  // Given up for a moment when the process has no descriptor left, so that a waiting connection can
  // be closed instead of keeping the reactor busy for ever.
  UniqueFd spare_;
  uint64_t refused_ = 0;
  std::optional<TimePoint> limit_told_;
  std::unique_ptr<FdWatch> watch_;
};

// The address of the other end, without port.
Result<std::string> remote_address(int fd);
// An error unless the other end of a Unix socket is root or this daemon's own user.
Result<std::string> trusted_local_user(int fd);

}  // namespace vjbod::rpc
