// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/peer_manager.h"

#include <algorithm>
#include <utility>

#include "common/config/values.h"
#include "common/rpc/errc.h"
#include "common/rpc/pairing_token.h"
#include "common/rpc/version.h"
#include "common/runtime/wall_clock.h"

namespace vjbod::initiator {

namespace {
constexpr Duration pair_timeout = std::chrono::seconds(15);
constexpr Duration describe_timeout = std::chrono::seconds(10);
constexpr Duration unpair_timeout = std::chrono::seconds(5);
}  // namespace

PeerManager::PeerManager(Reactor& reactor, const rpc::Identity& identity, std::string host_name,
                         HostState& state, rpc::EventLog& events)
    : reactor_(reactor),
      identity_(identity),
      host_name_(std::move(host_name)),
      state_(state),
      events_(events) {}

void PeerManager::start() {
  for (const auto& [name, peer] : state_.peers) open_link(peer);
}

void PeerManager::open_link(const PeerRecord& peer) {
  if (stopping_) return;
  auto& link = links_[peer.name];
  if (link)
    retire(std::move(link),
           {rpc::Errc::peer_unreachable, fmt::format("the boxes have just been paired anew; ask {} "
                                                     "again",
                                                     peer.name)});
  link = std::make_unique<PeerLink>(reactor_, identity_, peer, static_cast<PeerLinkEvents&>(*this));
  link->watch();
}

void PeerManager::retire(std::unique_ptr<PeerLink> link, Error reason) {
  PeerLink* raw = link.get();
  retired_.push_back(std::move(link));
  raw->close(std::move(reason), [this, raw] {
    std::erase_if(retired_, [raw](const auto& retired) { return retired.get() == raw; });
    if (retired_.empty() && shut_down_) std::exchange(shut_down_, nullptr)();
  });
}

void PeerManager::retire_pairing(uint64_t id) {
  const auto found = pairing_.find(id);
  if (found == pairing_.end()) return;
  std::unique_ptr<PeerLink> link = std::move(found->second);
  pairing_.erase(found);
  retire(std::move(link), {rpc::Errc::other, "the pairing is over"});
}

void PeerManager::shutdown(std::function<void()> done) {
  stopping_ = true;
  shut_down_ = std::move(done);
  const Error reason{rpc::Errc::daemon_not_running, "the host daemon is stopping"};
  // Emptied first: what waits for an answer may ask for another link.
  for (auto& [name, link] : std::exchange(links_, {})) retire(std::move(link), reason);
  for (auto& [id, link] : std::exchange(pairing_, {})) retire(std::move(link), reason);
  if (retired_.empty()) reactor_.post(std::exchange(shut_down_, nullptr));
}

void PeerManager::pair(const v1::HostPairRequest& request,
                       std::function<void(Result<v1::HostPeer>)> done) {
  if (stopping_) {
    done(fail(rpc::Errc::daemon_not_running, "the host daemon is stopping"));
    return;
  }
  auto token = rpc::decode_token(request.token());
  if (!token) {
    done(fail(rpc::Errc::authentication, "{}", token.error().text));
    return;
  }
  const bool address_given = !request.address().empty();
  if (auto where = config::parse_host_port(request.address(), 0);
      (address_given && (!where || where->host != request.address())) ||
      request.port() > UINT16_MAX) {
    done(fail(rpc::Errc::usage, "\"{}\", port {}, is not an address of a box",
              config::printable(request.address(), 100), request.port()));
    return;
  }
  if (state_.peers.size() >= peers_max) {
    done(
        fail(rpc::Errc::other, "this box is paired with {} others, which is the limit", peers_max));
    return;
  }
  // Nothing is begun that could not be remembered.
  if (auto writable = state_.save(); !writable) {
    done(fail(writable.error()));
    return;
  }
  auto record = std::make_shared<PeerRecord>();
  record->name = "new peer";
  record->address = request.address().empty() ? token->addresses.front() : request.address();
  record->port = request.port() != 0 ? static_cast<uint16_t>(request.port()) : token->port;
  record->fingerprint = token->fingerprint;
  // The channel compares the fingerprint inside the TLS handshake, so the secret never leaves for a
  // stranger.
  const uint64_t id = next_pairing_++;
  auto& link = pairing_[id];
  link =
      std::make_unique<PeerLink>(reactor_, identity_, *record, static_cast<PeerLinkEvents&>(*this));
  v1::PairRequest pair;
  pair.set_secret(token->secret.data(), token->secret.size());
  pair.set_host_name(host_name_);
  pair.set_initiator_iqn(state_.initiator_iqn);
  *pair.mutable_version() = rpc::our_version();
  link->call<v1::PairRequest, v1::PairResponse>(
      &PeerLink::Service::Stub::async_interface::Pair, pair, pair_timeout,
      [this, id, record, done = std::move(done)](Result<v1::PairResponse> answer) {
        if (!answer) {
          retire_pairing(id);
          done(fail(answer.error()));
          return;
        }
        if (auto taken = take_peer(*answer, *record); !taken) {
          // What that box had from an earlier pairing is still in use.
          if (known_by(record->fingerprint) == nullptr)
            undo_pairing(id);
          else
            retire_pairing(id);
          done(fail(taken.error()));
          return;
        }
        retire_pairing(id);
        events_.add(rpc::Severity::info, "paired", record->name,
                    fmt::format("paired with {} at {}{}", record->name,
                                config::host_port_text(record->address, record->port),
                                answer->target_name() == record->name
                                    ? ""
                                    : fmt::format("; it calls itself {} now, and stays {} here "
                                                  "until it is unpaired",
                                                  answer->target_name(), record->name)),
                    wall_now());
        open_link(*record);
        done(view(*record));
      });
}

vjbod::Status PeerManager::take_peer(const v1::PairResponse& answer, PeerRecord& record) {
  if (auto named = config::check_name("the name of the other box", answer.target_name()); !named)
    return named;
  if (auto usable = rpc::check_version(answer.version(), answer.target_name()); !usable)
    return usable;
  record.name = answer.target_name();
  record.paired_at = rfc3339(wall_now());
  // A box keeps the name by which disks, and people, know it here.
  if (const PeerRecord* same = known_by(record.fingerprint)) record.name = same->name;
  const auto known = state_.peers.find(record.name);
  if (known != state_.peers.end() && known->second.fingerprint != record.fingerprint)
    return fail(rpc::Errc::already_exists,
                "another box is paired under the name {} already; unpair it first, or give one of "
                "them another name",
                record.name);
  return state_.change([&](HostState& state) { state.peers[record.name] = record; });
}

const PeerRecord* PeerManager::known_by(const rpc::Fingerprint& fingerprint) const {
  for (const auto& [name, peer] : state_.peers)
    if (peer.fingerprint == fingerprint) return &peer;
  return nullptr;
}

void PeerManager::undo_pairing(uint64_t id) {
  const auto found = pairing_.find(id);
  if (found == pairing_.end()) return;  // the daemon is stopping
  found->second->call<v1::Empty, v1::Empty>(&PeerLink::Service::Stub::async_interface::Unpair,
                                            v1::Empty(), unpair_timeout,
                                            [this, id](Result<v1::Empty>) { retire_pairing(id); });
}

void PeerManager::unpair(const std::string& name, bool force,
                         std::function<void(vjbod::Status)> done) {
  auto found = link(name);
  if (!found) {
    done(fail(found.error()));
    return;
  }
  std::string disks;
  for (const auto& [disk_name, disk] : state_.disks) {
    if (disk.peer == name) disks += (disks.empty() ? "" : ", ") + disk_name;
  }
  if (!disks.empty()) {
    done(
        fail(rpc::Errc::busy, "disks of {} are attached here: {}; detach them first", name, disks));
    return;
  }
  for (const auto& [id, farewell] : state_.farewells) {
    if (force || farewell.peer != name || farewell.ending != FarewellRecord::Ending::deleted)
      continue;
    done(fail(rpc::Errc::busy,
              "LUN {} of {} is still to be deleted there; `vjbod unpair --force` leaves it",
              farewell.lun_name, name));
    return;
  }
  // The peer is not told of what could not be remembered.
  if (auto writable = state_.save(); !writable) {
    done(fail(writable.error()));
    return;
  }
  (*found)->call<v1::Empty, v1::Empty>(
      &PeerLink::Service::Stub::async_interface::Unpair, v1::Empty(), unpair_timeout,
      [this, name, force, done = std::move(done)](Result<v1::Empty> answer) {
        // A box that no longer knows us has nothing to forget.
        const bool told = answer || answer.error().code == rpc::Errc::authentication ||
                          answer.error().code == rpc::Errc::permission;
        if (!told && !force) {
          done(fail(Error{answer.error().code,
                          answer.error().text +
                              "; `vjbod unpair --force` forgets it here without telling it"}));
          return;
        }
        auto saved = state_.change([&](HostState& state) {
          state.peers.erase(name);
          std::erase_if(state.farewells, [&](const auto& farewell) {
            return farewell.second.peer == name;  // the other box has ended all of our bindings
          });
        });
        if (!saved) {
          done(fail(saved.error()));
          return;
        }
        if (!told)
          events_.add(
              rpc::Severity::warning, "peer-not-told", name,
              fmt::format("{} could not be told that the pairing is over, and keeps it until "
                          "somebody there says `vjbod target unpair {}`",
                          name, host_name_),
              wall_now());
        finish_unpair(name);
        done({});
      });
}

void PeerManager::finish_unpair(const std::string& name) {
  events_.add(rpc::Severity::info, "unpaired", name, fmt::format("no longer paired with {}", name),
              wall_now());
  reactor_.post([this, name] {
    const auto found = links_.find(name);
    if (found == links_.end() || state_.peers.contains(name)) return;
    std::unique_ptr<PeerLink> link = std::move(found->second);
    links_.erase(found);
    retire(std::move(link),
           {rpc::Errc::not_found, fmt::format("this box is no longer paired with {}", name)});
  });
}

v1::HostPeer PeerManager::view(const PeerRecord& peer) const {
  v1::HostPeer out;
  out.set_name(peer.name);
  out.set_address(peer.address);
  out.set_port(peer.port);
  out.set_certificate_fingerprint(peer.fingerprint.to_text());
  if (auto at = parse_rfc3339(peer.paired_at)) {
    out.mutable_paired_at()->set_seconds(
        std::chrono::duration_cast<std::chrono::seconds>(at->time_since_epoch()).count());
  }
  if (const auto link = links_.find(peer.name); link != links_.end()) {
    out.set_reachable(link->second->reachable());
    out.set_last_error(link->second->last_error());
    *out.mutable_version() = link->second->version();
  }
  for (const auto& [id, farewell] : state_.farewells) {
    if (farewell.peer != peer.name) continue;
    v1::PendingFarewell& pending = *out.add_pending();
    pending.set_lun(farewell.lun_name);
    pending.set_action(farewell.ending == FarewellRecord::Ending::deleted ? "delete" : "close");
    if (auto since = parse_rfc3339(farewell.since))
      pending.mutable_since()->set_seconds(
          std::chrono::duration_cast<std::chrono::seconds>(since->time_since_epoch()).count());
    pending.set_last_error(farewell.last_error);
  }
  out.set_disks(static_cast<uint32_t>(
      std::count_if(state_.disks.begin(), state_.disks.end(),
                    [&](const auto& entry) { return entry.second.peer == peer.name; })));
  return out;
}

void PeerManager::list(v1::ListHostPeersResponse& response) const {
  for (const auto& [name, peer] : state_.peers) *response.add_peers() = view(peer);
}

Result<PeerLink*> PeerManager::link(const std::string& name) {
  const auto found = links_.find(name);
  if (found == links_.end() || !state_.peers.contains(name)) {
    return fail(rpc::Errc::not_found,
                "this box is not paired with \"{}\"; `vjbod peers` lists those it is paired with",
                config::printable(name, config::name_bytes_max));
  }
  return found->second.get();
}

Result<const PeerRecord*> PeerManager::record(const std::string& name) const {
  const auto found = state_.peers.find(name);
  if (found == state_.peers.end()) {
    return fail(rpc::Errc::not_found,
                "this box is not paired with \"{}\"; `vjbod peers` lists those it is paired with",
                config::printable(name, config::name_bytes_max));
  }
  return &found->second;
}

void PeerManager::describe(const std::string& name,
                           std::function<void(Result<v1::DescribeResponse>)> done) {
  auto found = link(name);
  if (!found) {
    done(fail(found.error()));
    return;
  }
  v1::DescribeRequest request;
  *request.mutable_version() = rpc::our_version();
  (*found)->call<v1::DescribeRequest, v1::DescribeResponse>(
      &PeerLink::Service::Stub::async_interface::Describe, request, describe_timeout,
      [name, done = std::move(done)](Result<v1::DescribeResponse> answer) {
        if (answer) {
          if (auto usable = rpc::check_version(answer->version(), name); !usable) {
            done(fail(usable.error()));
            return;
          }
        }
        done(std::move(answer));
      });
}

void PeerManager::on_peer_event(const std::string& peer, const v1::Event& event) {
  const auto severity = event.severity() == "error"     ? rpc::Severity::error
                        : event.severity() == "warning" ? rpc::Severity::warning
                                                        : rpc::Severity::info;
  events_.add(severity, "peer-" + config::printable(event.kind(), 64),
              fmt::format("{}/{}", peer, config::printable(event.object(), 64)),
              config::printable(event.text(), 512), wall_now());
  if (on_event) on_event(peer, event);
}

void PeerManager::on_peer_reachable(const std::string& peer, bool reachable) {
  if (!state_.peers.contains(peer)) return;
  if (reachable) {
    events_.add(rpc::Severity::info, "control-open", peer,
                fmt::format("the control channel to {} is open", peer), wall_now());
    if (on_reachable) on_reachable(peer);
  } else {
    events_.add(rpc::Severity::warning, "control-lost", peer,
                fmt::format("the control channel to {} is lost ({}); data sessions are not touched",
                            peer, links_.at(peer)->last_error()),
                wall_now());
  }
}

}  // namespace vjbod::initiator
