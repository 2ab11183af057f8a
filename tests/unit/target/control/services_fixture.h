// SPDX-License-Identifier: Apache-2.0
// Both services over real gRPC on the loopback, with everything that they work on.
#pragma once

#include <filesystem>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "common/rpc/unix_server.h"
#include "common/rpc/version.h"
#include "common/runtime/asio_reactor.h"
#include "common/runtime/buffer_pool.h"
#include "common/runtime/wall_clock.h"
#include "target/control/access_policy.h"
#include "target/control/admin_service.h"
#include "target/control/control_parts.h"
#include "target/control/peer_service.h"
#include "tests/support/temp_dir.h"

namespace vjbod::target {

using rpc::Callee;
using rpc::Errc;

class ServicesTest : public testing::Test, public ServerEvents {
 protected:
  ServicesTest() {
    std::filesystem::create_directory(dir_ / "pool");
    std::filesystem::create_directory(dir_ / "state");
    config_.name = "nas2";
    config_.pools = {{"tank", dir_ / "pool"}};
    config_.use_io_uring = false;
    on_reactor([this] { start(); });
    admin_ = v1::TargetAdmin::NewStub(rpc::make_local_channel(dir_ / "t.sock"));
    peer_ = connect(host_);
  }
  ~ServicesTest() override {
    std::promise<void> stopped;
    int left = 3;
    reactor_.post([&] {
      auto one = [&] {
        if (--left == 0) stopped.set_value();
      };
      watchers_.close_all({Errc::other, "the test is over"});
      peer_server_->stop(std::chrono::seconds(1), one);
      unix_server_->stop(std::chrono::seconds(1), one);
      server_->shutdown(one);
    });
    stopped.get_future().wait();
    on_reactor([this] {
      luns_.reset();
      server_.reset();
    });
    reactor_.stop();
    thread_.join();
  }

  template <typename Work>
  void on_reactor(Work work) {
    std::promise<void> done;
    reactor_.post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }
  void start() {
    server_.emplace(reactor_, std::vector<SessionPlace>{{&reactor_, &buffers_}}, ServerLimits{},
                    *this);
    serving_.emplace(reactor_, reactor_, *server_);
    store_.emplace(*StateStore::open(dir_ / "state"));
    pools_.emplace(config_.pools);
    auto renew = [this] {
      serving_->set_access(std::make_shared<const AccessPolicy>(
          store_->state(), luns_->open_targets(), config_.chap_algorithms));
    };
    luns_.emplace(config_, *store_, *pools_, *serving_, renew);
    access_.emplace(*store_, *serving_, renew);
    luns_->open_all();
    auto portals = [] { return std::vector<ReachablePortal>{{"127.0.0.1", 3260}}; };
    auto control = [this] {
      return std::vector<ReachablePortal>{{"127.0.0.1", peer_server_->port()}};
    };
    parts_.emplace(ControlParts{config_, identity_, reactor_, *serving_, *store_, *pools_, *luns_,
                                *access_, pairing_, events_, watchers_, wall_now(), portals,
                                control});
    peer_service_.emplace(*parts_);
    admin_service_.emplace(*parts_);
    peer_server_ = *rpc::PeerServer::start(reactor_, "127.0.0.1:0", identity_, {&*peer_service_});
    unix_server_ = *rpc::UnixServer::start(reactor_, dir_ / "t.sock", {&*admin_service_});
  }
  std::unique_ptr<v1::TargetPeer::Stub> connect(const rpc::Identity& identity) {
    return v1::TargetPeer::NewStub(
        rpc::make_peer_channel(identity, identity_.fingerprint, "127.0.0.1", peer_server_->port()));
  }

  // Calls and gives the kind of the error, or nothing.
  template <typename Stub, typename Request, typename Response>
  std::optional<Errc> call(Stub& stub,
                           grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                        Response*),
                           const Request& request, Response* response) {
    grpc::ClientContext context;
    context.set_deadline(wall_now() + std::chrono::seconds(30));
    grpc::Status status = (stub.*method)(&context, request, response);
    if (status.ok()) return std::nullopt;
    Error error = rpc::from_grpc_status(status, Callee::peer, "the target");
    last_error_ = error.text;
    return static_cast<Errc>(error.code.value());
  }
  rpc::PairingToken make_token() {
    v1::PairToken token;
    EXPECT_FALSE(call(*admin_, &v1::TargetAdmin::Stub::CreatePairToken,
                      v1::CreatePairTokenRequest(), &token));
    return *rpc::decode_token(token.token());
  }
  std::optional<Errc> pair(v1::TargetPeer::Stub& stub, ConstBytes secret,
                           std::string name = "nas1") {
    v1::PairRequest request;
    request.set_secret(std::string(as_text(secret)));
    request.set_host_name(name);
    request.set_initiator_iqn("iqn.2026-11.io.vjbod:" + name);
    *request.mutable_version() = rpc::our_version();
    v1::PairResponse response;
    return call(stub, &v1::TargetPeer::Stub::Pair, request, &response);
  }
  void pair_host() { ASSERT_FALSE(pair(*peer_, make_token().secret)); }
  v1::ProvisionLunRequest provision_request() {
    v1::ProvisionLunRequest request;
    request.set_request_id("2f1b0c3e-0102-4304-8506-0708090a0b0c");
    request.set_name("disk1");
    request.set_pool("tank");
    request.set_size_bytes(1 << 20);
    return request;
  }
  v1::LunAccess provision() {
    v1::LunAccess access;
    EXPECT_FALSE(call(*peer_, &v1::TargetPeer::Stub::ProvisionLun, provision_request(), &access));
    return access;
  }

  void on_session_opened(const SessionInfo&) override {}
  void on_session_closed(const SessionInfo&, const Error&) override {}
  void on_login_failed(const std::string&, const Error&) override {}

  test::TempDir dir_;
  TargetConfig config_;
  rpc::Identity identity_ = *rpc::make_identity("nas2");
  rpc::Identity host_ = *rpc::make_identity("nas1");
  AsioReactor reactor_{1};
  std::thread thread_{[this] { reactor_.run(); }};
  BufferPool buffers_{size_t{4} << 20};
  std::optional<TargetServer> server_;
  std::optional<Serving> serving_;
  std::optional<StateStore> store_;
  std::optional<Pools> pools_;
  std::optional<LunManager> luns_;
  std::optional<AccessManager> access_;
  PairingDesk pairing_;
  rpc::EventLog events_;
  HostWatchers watchers_;
  std::optional<ControlParts> parts_;
  std::optional<PeerService> peer_service_;
  std::optional<AdminService> admin_service_;
  std::unique_ptr<rpc::PeerServer> peer_server_;
  std::unique_ptr<rpc::UnixServer> unix_server_;
  std::unique_ptr<v1::TargetAdmin::Stub> admin_;
  std::unique_ptr<v1::TargetPeer::Stub> peer_;
  std::string last_error_;
};

}  // namespace vjbod::target
