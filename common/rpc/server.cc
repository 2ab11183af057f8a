// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/server.h"

#include <grpcpp/server_builder.h>

#include "common/rpc/channel.h"
#include "common/rpc/errc.h"
#include "common/rpc/tls_credentials.h"
#include "common/runtime/wall_clock.h"

namespace vjbod::rpc {

Result<std::unique_ptr<Server>> Server::start(Reactor& reactor, UniqueFd listening,
                                              std::shared_ptr<grpc::ServerCredentials> credentials,
                                              const std::vector<grpc::Service*>& services,
                                              ConnectionTable limits, Acceptor::Identify identify) {
  grpc::ServerBuilder builder;
  apply_server_settings(builder);
  for (grpc::Service* service : services) builder.RegisterService(service);
  Acceptor::Sink sink = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      std::move(credentials));
  std::unique_ptr<Server> result(new Server(reactor));
  result->server_ = builder.BuildAndStart();
  if (result->server_ == nullptr) return fail(Errc::other, "gRPC could not start its server");
  result->acceptor_ = std::make_unique<Acceptor>(reactor, std::move(listening), std::move(sink),
                                                 std::move(limits), std::move(identify));
  return result;
}

Server::~Server() {
  acceptor_.reset();
  if (stopper_.joinable()) stopper_.join();
}

void Server::stop(Duration grace, std::function<void()> done) {
  acceptor_.reset();
  // Shutdown() waits for calls that wait for the reactor: it must not run there.
  stopper_ = std::thread([this, deadline = wall_now() + grace, done = std::move(done)] {
    server_->Shutdown(deadline);
    server_->Wait();
    reactor_.post(done);
  });
}

Result<std::unique_ptr<PeerServer>> PeerServer::start(Reactor& reactor, const std::string& listen,
                                                      const Identity& identity,
                                                      const std::vector<grpc::Service*>& services) {
  Result<UniqueFd> listening = listen_on_tcp(listen);
  if (!listening) return fail(listening.error());
  uint16_t port = local_port(listening->get());
  Result<std::unique_ptr<Server>> server =
      Server::start(reactor, std::move(*listening), make_server_credentials(identity), services,
                    ConnectionTable(connections_max, connections_per_address_max), remote_address);
  if (!server) return fail(server.error());
  return std::unique_ptr<PeerServer>(new PeerServer(std::move(*server), port));
}

}  // namespace vjbod::rpc
