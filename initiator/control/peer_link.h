// SPDX-License-Identifier: Apache-2.0
// The control channel to one paired box: calls that answer on the main reactor, and the Watch
// stream, which tells whether the box is there. Losing it never touches a data session. Owned by
// the peer manager; main reactor.
#pragma once

#include <functional>
#include <map>
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
  ~PeerLink();  // only before the first call, or when close() has called back
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;

  // `done` comes once, on the reactor, within `timeout`, never from inside this call.
  template <typename Request, typename Response>
  void call(Method<Request, Response> method, const Request& request, Duration timeout,
            Done<Response> done) {
    if (closing_) {
      reactor_.post([done = std::move(done), why = close_reason_] { done(fail(why)); });
      return;
    }
    struct Call final : CallUnderWay {
      Request request;
      Response response;
      Done<Response> done;
    };
    auto owned = std::make_unique<Call>();
    Call* call = owned.get();
    call->request = request;
    call->done = std::move(done);
    call->context.set_deadline(
        wall_now() + std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout));
    const uint64_t id = next_call_++;
    calls_.emplace(id, std::move(owned));
    // gRPC's thread carries nothing that could be the last reference to anything.
    (stub_->async()->*method)(&call->context, &call->request, &call->response,
                              [this, id, call](grpc::Status status) {
                                reactor_.post([this, id, call, status] {
                                  const auto node = calls_.extract(id);
                                  check_closed();
                                  if (status.ok())
                                    call->done(std::move(call->response));
                                  else
                                    call->done(fail(error_of(status)));
                                });
                              });
  }

  // Opens the Watch stream, and again whenever it breaks.
  void watch();
  // Ends everything: calls under way and later ones are answered with `reason`. `closed` comes
  // once, on the reactor, not from inside any call of the link: no thread of gRPC knows it any
  // more, and it may be destroyed.
  void close(Error reason, std::function<void()> closed);

  bool reachable() const { return reachable_; }
  const std::string& last_error() const { return last_error_; }
  const v1::VersionInfo& version() const { return version_; }

 private:
  class Watcher;
  // What gRPC writes to while a call is under way. Made and destroyed on the reactor.
  struct CallUnderWay {
    virtual ~CallUnderWay() = default;
    grpc::ClientContext context;
  };
  Error error_of(const grpc::Status& status) const;
  void check_closed();
  void on_watch_event(const v1::Event& event);
  void on_watch_ended(const grpc::Status& status);
  void open_watch();

  Reactor& reactor_;
  const std::string name_, what_;
  PeerLinkEvents& events_;
  std::unique_ptr<Service::Stub> stub_;
  std::map<uint64_t, std::unique_ptr<CallUnderWay>> calls_;
  uint64_t next_call_ = 1;
  std::unique_ptr<Watcher> watcher_;
  bool closing_ = false;
  Error close_reason_;
  std::function<void()> closed_;
  Timer again_;
  Duration pause_{};
  bool reachable_ = false;
  std::string last_error_;
  v1::VersionInfo version_;
};

}  // namespace vjbod::initiator
