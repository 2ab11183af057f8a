// SPDX-License-Identifier: Apache-2.0
// The control channel to one paired box: calls that answer on the main reactor, and the Watch
// stream, which tells whether the box is there. Losing it never touches a data session. Owned by
// the peer manager; main reactor.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <grpcpp/client_context.h>

#include "common/rpc/channel.h"
#include "common/rpc/status_map.h"
#include "common/runtime/reactor.h"
#include "common/runtime/wall_clock.h"
#include "initiator/control/host_state.h"
#include "vjbod/v1/target.grpc.pb.h"

namespace vjbod::initiator {

class PeerLinkEvents {
 public:
  virtual void on_peer_event(const std::string& peer, const v1::Event& event) = 0;
  virtual void on_peer_reachable(const std::string& peer, bool reachable) = 0;

 protected:
  ~PeerLinkEvents() = default;
};

class PeerLink {
 public:
  using Service = v1::TargetPeer;
  template <typename Response>
  using Done = std::function<void(Result<Response>)>;
  template <typename Request, typename Response>
  using Method = void (Service::Stub::async_interface::*)(grpc::ClientContext*, const Request*,
                                                          Response*,
                                                          std::function<void(grpc::Status)>);

  PeerLink(Reactor& reactor, const rpc::Identity& identity, const PeerRecord& peer,
           PeerLinkEvents& events);
  ~PeerLink();  // calls under way are cancelled; their callbacks do not come any more
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;

  // `done` comes once, on the reactor, within `timeout`, unless the link is destroyed before.
  template <typename Request, typename Response>
  void call(Method<Request, Response> method, const Request& request, Duration timeout,
            Done<Response> done) {
    struct Call {
      grpc::ClientContext context;
      Request request;
      Response response;
    };
    auto call = std::make_shared<Call>();
    call->request = request;
    call->context.set_deadline(
        wall_now() + std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout));
    (stub_->async()->*method)(
        &call->context, &call->request, &call->response,
        [call, &reactor = reactor_, alive = alive_, what = what_,
         done = std::move(done)](grpc::Status status) {
          reactor.post([call, alive, what, done, status] {
            if (!*alive) return;
            if (status.ok()) {
              done(std::move(call->response));
            } else {
              done(fail(rpc::from_grpc_status(status, rpc::Callee::peer, what)));
            }
          });
        });
  }

  // Opens the Watch stream, and again whenever it breaks.
  void watch();

  bool reachable() const { return reachable_; }
  const std::string& last_error() const { return last_error_; }
  const v1::VersionInfo& version() const { return version_; }

 private:
  class Watcher;
  void on_watch_event(const v1::Event& event);
  void on_watch_ended(const grpc::Status& status);
  void open_watch();

  Reactor& reactor_;
  const std::string name_, what_;
  PeerLinkEvents& events_;
  std::unique_ptr<Service::Stub> stub_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // read and written on the reactor
  std::shared_ptr<Watcher> watcher_;
  Timer again_;
  Duration pause_{};
  bool reachable_ = false;
  std::string last_error_;
  v1::VersionInfo version_;
};

}  // namespace vjbod::initiator
