// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/unix_server.h"

#include <unistd.h>

namespace vjbod::rpc {

Result<std::unique_ptr<UnixServer>> UnixServer::start(Reactor& reactor, const std::string& path,
                                                      const std::vector<grpc::Service*>& services) {
  Result<UniqueFd> listening = listen_on_unix(path);
  if (!listening) return fail(listening.error());
  Result<std::unique_ptr<Server>> server =
      Server::start(reactor, std::move(*listening), grpc::InsecureServerCredentials(), services,
                    ConnectionTable(connections_max, connections_max), trusted_local_user);
  if (!server) {
    ::unlink(path.c_str());
    return fail(server.error());
  }
  return std::unique_ptr<UnixServer>(new UnixServer(std::move(*server), path));
}

void UnixServer::stop(Duration grace, std::function<void()> done) {
  ::unlink(path_.c_str());
  server_->stop(grace, std::move(done));
}

}  // namespace vjbod::rpc
