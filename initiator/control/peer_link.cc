// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/peer_link.h"

#include <algorithm>
#include <utility>

#include "common/config/values.h"
#include "common/rpc/version.h"

namespace vjbod::initiator {

namespace {
constexpr Duration pause_min = std::chrono::seconds(1), pause_max = std::chrono::seconds(30);
constexpr Duration describe_timeout = std::chrono::seconds(10);
}  // namespace

// One Watch call. gRPC holds it until OnDone; the link may be gone by then, so it talks by posts
// that check.
class PeerLink::Watcher : public grpc::ClientReadReactor<v1::Event> {
 public:
  Watcher(PeerLink& link, std::shared_ptr<bool> alive) : link_(link), alive_(std::move(alive)) {}

  static void start(const std::shared_ptr<Watcher>& self, Service::Stub& stub) {
    self->self_ = self;
    stub.async()->Watch(&self->context_, &self->request_, self.get());
    self->StartRead(&self->event_);
    self->StartCall();
  }
  void cancel() { context_.TryCancel(); }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    post([link = &link_, event = event_] { link->on_watch_event(event); });
    StartRead(&event_);
  }
  void OnDone(const grpc::Status& status) override {
    post([link = &link_, status] { link->on_watch_ended(status); });
    self_.reset();
  }

 private:
  void post(std::function<void()> work) {
    reactor_.post([alive = alive_, work = std::move(work)] {
      if (*alive) work();
    });
  }

  PeerLink& link_;
  Reactor& reactor_ = link_.reactor_;
  std::shared_ptr<bool> alive_;
  std::shared_ptr<Watcher> self_;
  grpc::ClientContext context_;
  v1::Empty request_;
  v1::Event event_;
};

PeerLink::PeerLink(Reactor& reactor, const rpc::Identity& identity, const PeerRecord& peer,
                   PeerLinkEvents& events)
    : reactor_(reactor),
      name_(peer.name),
      what_(fmt::format("{} at {}", peer.name, config::host_port_text(peer.address, peer.port))),
      events_(events),
      stub_(Service::NewStub(
          rpc::make_peer_channel(identity, peer.fingerprint, peer.address, peer.port))),
      again_(reactor, [this] { open_watch(); }),
      pause_(pause_min) {}

PeerLink::~PeerLink() {
  *alive_ = false;
  if (watcher_) watcher_->cancel();
}

void PeerLink::watch() {
  open_watch();
}

void PeerLink::open_watch() {
  v1::DescribeRequest request;
  *request.mutable_version() = rpc::our_version();
  call<v1::DescribeRequest, v1::DescribeResponse>(
      &Service::Stub::async_interface::Describe, request, describe_timeout,
      [this](Result<v1::DescribeResponse> described) {
        Status usable;
        if (!described) {
          usable = fail(described.error());
        } else {
          version_ = described->version();
          usable = rpc::check_version(version_, name_);
        }
        if (!usable) {
          on_watch_ended(rpc::to_grpc_status(usable.error()));
          return;
        }
        pause_ = pause_min;
        last_error_.clear();
        if (!std::exchange(reachable_, true)) events_.on_peer_reachable(name_, true);
        watcher_ = std::make_shared<Watcher>(*this, alive_);
        Watcher::start(watcher_, *stub_);
      });
}

void PeerLink::on_watch_event(const v1::Event& event) {
  events_.on_peer_event(name_, event);
}

void PeerLink::on_watch_ended(const grpc::Status& status) {
  watcher_.reset();
  last_error_ = status.ok() ? "the peer closed the control channel"
                            : rpc::from_grpc_status(status, rpc::Callee::peer, what_).text;
  if (std::exchange(reachable_, false)) events_.on_peer_reachable(name_, false);
  again_.arm_after(pause_);
  pause_ = std::min(pause_ * 2, pause_max);
}

}  // namespace vjbod::initiator
