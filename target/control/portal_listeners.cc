// SPDX-License-Identifier: Apache-2.0
#include "target/control/portal_listeners.h"

#include <utility>

#include "common/base/log.h"
#include "common/config/values.h"
#include "common/net/port_user.h"
#include "common/rpc/errc.h"

namespace vjbod::target {

PortalListeners::PortalListeners(AsioReactor& home, std::vector<AsioReactor*> shards,
                                 TargetServer& server, std::vector<PortalConfig> portals,
                                 std::function<void()> opened)
    : home_(home),
      shards_(std::move(shards)),
      server_(server),
      waiting_(std::move(portals)),
      opened_(std::move(opened)),
      retry_timer_(home, [this] { retry(); }) {}

Status PortalListeners::open() {
  for (const PortalConfig& portal : std::exchange(waiting_, {})) {
    Status opened = open_one(portal);
    if (opened) continue;
    if (opened.error().code != std::errc::address_not_available) return opened;
    log::warn("{}; trying again until the address is there", opened.error().text);
    waiting_.push_back(portal);
  }
  if (!waiting_.empty()) retry_timer_.arm_after(bind_retry);
  return {};
}

Status PortalListeners::open_one(const PortalConfig& portal) {
  Result<std::unique_ptr<transport::TcpListener>> listener =
      transport::TcpListener::open(home_, portal.address, portal.port, "", *this);
  const std::string where = config::host_port_text(portal.address, portal.port);
  if (!listener) {
    if (listener.error().code == std::errc::address_in_use)
      return fail(rpc::Errc::busy, "portal {} is in use by {}; stop it or choose another address",
                  where, net::port_user(portal.port));
    return fail(listener.error().code, "portal {}: {}", where, listener.error().text);
  }
  log::info("portal {} is open", (*listener)->local());
  listeners_.push_back(std::move(*listener));
  return {};
}

void PortalListeners::retry() {
  const size_t open_before = listeners_.size();
  for (const PortalConfig& portal : std::exchange(waiting_, {})) {
    Status opened = open_one(portal);
    if (opened) continue;
    if (opened.error().code != std::errc::address_not_available)
      log::error("{}", opened.error().text);
    waiting_.push_back(portal);
  }
  if (!waiting_.empty()) retry_timer_.arm_after(bind_retry);
  if (listeners_.size() > open_before) opened_();
}

std::vector<ReachablePortal> PortalListeners::listening() const {
  std::vector<ReachablePortal> result;
  for (const auto& listener : listeners_)
    if (Result<config::HostPort> local = config::parse_host_port(listener->local(), 0))
      result.push_back({local->host, local->port});
  return result;
}

void PortalListeners::on_accepted(transport::AcceptedSocket accepted) {
  std::optional<size_t> place = server_.reserve_place(accepted.peer_address);
  if (!place) return note_limit(accepted.peer_address);  // dropping the socket closes it
  AsioReactor& reactor = *shards_[*place];
  auto shared = std::make_shared<transport::AcceptedSocket>(std::move(accepted));
  reactor.post([&server = server_, &reactor, shared, place = *place] {
    server.adopt(place, shared->peer_address,
                 transport::make_tcp_mover(reactor, std::move(shared->socket)));
  });
}

void PortalListeners::note_limit(const std::string& address) {
  ++turned_away_;
  const TimePoint now = home_.now();
  if (limit_told_ && now - *limit_told_ < limit_told_interval) return;
  limit_told_ = now;
  log::warn(
      "connections from {} are turned away: a limit of the configuration is reached "
      "(limits.connections, limits.connections_per_address; {} turned away so far)",
      address, turned_away_);
}

void PortalListeners::on_accept_trouble(const Error& error) {
  log::error("connections cannot be accepted: {}", error.text);
}

}  // namespace vjbod::target
