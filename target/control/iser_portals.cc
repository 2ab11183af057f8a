// SPDX-License-Identifier: Apache-2.0
#include "target/control/iser_portals.h"

#include <utility>

#include "common/base/log.h"
#include "common/config/values.h"
#include "common/transport/iser/rdma_verbs.h"
#include "common/transport/rdma_errc.h"

namespace vjbod::target {

using transport::RdmaErrc;

IserPortals::Place::Place(Reactor& reactor, Reactor& disposal,
                          std::shared_ptr<transport::rdma::OpenDevices> devices)
    : fabric(transport::rdma::make_verbs_fabric(reactor, disposal, std::move(devices))),
      place(reactor, *fabric),
      reception(place) {}

IserPortals::IserPortals(std::vector<AsioReactor*> shards, Reactor& disposal, TargetServer& server,
                         std::vector<PortalConfig> portals)
    : shards_(std::move(shards)),
      server_(server),
      retry_timer_(*shards_.front(), [this] { look(); }) {
  const auto devices = std::make_shared<transport::rdma::OpenDevices>();
  for (AsioReactor* shard : shards_)
    places_.push_back(std::make_shared<Place>(*shard, disposal, devices));
  for (PortalConfig& portal : portals) portals_.push_back({std::move(portal), nullptr, false});
}

IserPortals::~IserPortals() = default;

void IserPortals::open() {
  open_ = true;
  look();
}

void IserPortals::close() {
  open_ = false;
  retry_timer_.cancel();
  for (Portal& portal : portals_) portal.listener.reset();
  lost_.clear();
}

std::vector<std::function<void()>> IserPortals::take_down() {
  std::vector<std::function<void()>> work;
  for (auto& place : places_)
    work.emplace_back([place = std::move(place)]() mutable { place.reset(); });
  places_.clear();
  return work;
}

void IserPortals::look() {
  lost_.clear();
  if (!open_) return;
  for (Portal& portal : portals_)
    if (portal.listener == nullptr) listen(portal);
  retry_timer_.arm_after(listen_retry);
}

void IserPortals::listen(Portal& portal) {
  const std::string where = config::host_port_text(portal.at.address, portal.at.port);
  auto listener = transport::IserListener::open(places_.front()->place, portal.at.address,
                                                portal.at.port, *this);
  if (listener) {
    portal.listener = std::move(*listener);
    portal.told_missing = false;
    log::info("portal {} takes iSER, too", where);
    return;
  }
  if (std::exchange(portal.told_missing, true)) return;
  if (listener.error().code == RdmaErrc::no_rdma_device)
    log::info("portal {} takes no iSER: {}", where, listener.error().text);
  else
    log::warn("portal {} takes no iSER: {}", where, listener.error().text);
}

void IserPortals::on_requested(transport::IserRequest request) {
  const std::string address = request.peer_address;
  std::optional<size_t> place = server_.reserve_place(address);
  if (!place) return;  // dropping the request refuses it
  AsioReactor& reactor = *shards_[*place];
  auto shared = std::make_shared<transport::IserRequest>(std::move(request));
  // The request's events must come to its shard from before it is answered.
  reactor.post([this, shared, at = places_[*place], place = *place, address] {
    Status ready = at->fabric->prepare();
    shards_.front()->post([this, shared, at, place, address, ready] {
      Status moved = ready;
      if (moved && place != 0)
        moved = places_.empty()
                    ? fail(RdmaErrc::no_resources, "The daemon is stopping.")
                    : places_.front()->fabric->hand_over(*shared->incoming, *at->fabric);
      if (!moved) {
        log::warn("iSER connection of {}: {}", address, moved.error().text);
        return server_.abandon(place, address);
      }
      shards_[place]->post([this, shared, at, place, address] {
        at->reception.receive(
            std::move(*shared),
            [this, place, address](Result<std::unique_ptr<transport::DataMover>> mover) {
              if (mover) return server_.adopt(place, address, std::move(*mover));
              shards_.front()->post([this, place, address, error = mover.error()] {
                log::warn("iSER connection of {}: {}", address, error.text);
                server_.abandon(place, address);
              });
            });
      });
    });
  });
}

void IserPortals::on_bad_request(const std::string& peer_address, const Error& reason) {
  ++refused_;
  const TimePoint now = shards_.front()->now();
  if (refusal_told_ && now - *refusal_told_ < refusal_told_interval) return;
  refusal_told_ = now;
  log::warn("an RDMA connect request of {} is refused: {} ({} refused so far)", peer_address,
            reason.text, refused_);
}

void IserPortals::on_listener_lost(transport::Listener& listener, const Error& reason) {
  for (Portal& portal : portals_) {
    if (portal.listener.get() != &listener) continue;
    log::warn("portal {} takes no iSER any more: {}", listener.local(), reason.text);
    lost_.push_back(std::move(portal.listener));
    portal.told_missing = true;
  }
}

}  // namespace vjbod::target
