// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/peer_link.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/config/values.h"
#include "common/rpc/version.h"

namespace vjbod::initiator {

namespace {
constexpr Duration pause_min = std::chrono::seconds(1), pause_max = std::chrono::seconds(30);
constexpr Duration describe_timeout = std::chrono::seconds(10);
}  // namespace

// One Watch call, owned by the link and destroyed on the reactor, after OnDone.
class PeerLink::Watcher final : public grpc::ClientReadReactor<v1::Event> {
 public:
  explicit Watcher(PeerLink& link) : link_(link) {}

  void start(Service::Stub& stub) {
    stub.async()->Watch(&context_, &request_, this);
    StartRead(&event_);
    StartCall();
  }
  void cancel() { context_.TryCancel(); }

  // gRPC's threads
  void OnReadDone(bool ok) override {
    if (!ok) return;
    link_.reactor_.post([link = &link_, event = event_] { link->on_watch_event(event); });
    StartRead(&event_);
  }
  void OnDone(const grpc::Status& status) override {
    link_.reactor_.post([link = &link_, status] { link->on_watch_ended(status); });
  }

 private:
  PeerLink& link_;
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
  VJBOD_CHECK(calls_.empty() && watcher_ == nullptr, "the link to {} has calls under way", name_);
}

Error PeerLink::error_of(const grpc::Status& status) const {
  // What was answered counts, also while closing; what was cut off has the reason for that.
  if (closing_ && status.error_code() == grpc::StatusCode::CANCELLED) return close_reason_;
  return rpc::from_grpc_status(status, rpc::Callee::peer, what_);
}

void PeerLink::close(Error reason, std::function<void()> closed) {
  VJBOD_CHECK(!closing_, "the link to {} is closed twice", name_);
  closing_ = true;
  close_reason_ = std::move(reason);
  closed_ = std::move(closed);
  again_.cancel();
  for (auto& [id, call] : calls_) call->context.TryCancel();
  if (watcher_) watcher_->cancel();
  check_closed();
}

void PeerLink::check_closed() {
  if (closed_ && calls_.empty() && watcher_ == nullptr)
    reactor_.post(std::exchange(closed_, nullptr));
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
        if (closing_) return;
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
        watcher_ = std::make_unique<Watcher>(*this);
        watcher_->start(*stub_);
      });
}

void PeerLink::on_watch_event(const v1::Event& event) {
  if (!closing_) events_.on_peer_event(name_, event);
}

void PeerLink::on_watch_ended(const grpc::Status& status) {
  watcher_.reset();
  if (closing_) return check_closed();
  last_error_ = status.ok() ? "the peer closed the control channel"
                            : rpc::from_grpc_status(status, rpc::Callee::peer, what_).text;
  if (std::exchange(reachable_, false)) events_.on_peer_reachable(name_, false);
  again_.arm_after(pause_);
  pause_ = std::min(pause_ * 2, pause_max);
}

}  // namespace vjbod::initiator
