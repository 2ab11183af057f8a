// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/path_choice.h"

#include <algorithm>

#include "common/rpc/errc.h"

namespace vjbod::initiator {

namespace {

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

const v1::Portal* portal_at(const v1::DescribeResponse& peer, const std::string& address) {
  const auto found =
      std::find_if(peer.portals().begin(), peer.portals().end(),
                   [&](const v1::Portal& portal) { return portal.address() == address; });
  return found == peer.portals().end() ? nullptr : &*found;
}

bool has_address(const std::vector<net::Interface>& ours, const std::string& address) {
  return std::any_of(ours.begin(), ours.end(), [&](const net::Interface& interface) {
    return std::any_of(interface.addresses.begin(), interface.addresses.end(),
                       [&](const net::InterfaceAddress& own) { return own.address == address; });
  });
}

PathCandidate candidate(transport::Kind kind, const std::string& address, uint16_t port,
                        const std::string& source, const std::string& interface) {
  PathCandidate path;
  path.kind = kind;
  path.endpoint.address = address;
  path.endpoint.port = port;
  path.endpoint.source_address = source;
  path.endpoint.interface_name = interface;
  return path;
}

RankedInterface ranked(const net::Interface& interface) {
  RankedInterface one;
  one.name = interface.name;
  one.mtu = interface.mtu;
  one.speed_mbps = interface.speed_mbps;
  one.up = interface.up;
  if (interface.rdma)
    one.rdma = RankedRdma{.device = interface.rdma->device,
                          .port = interface.rdma->port,
                          .link_up = interface.rdma->link_up,
                          .link_state = interface.rdma->link_state,
                          .link_layer = interface.rdma->link_layer,
                          .regions_max = interface.rdma->regions_max,
                          .region_bytes_max = interface.rdma->region_bytes_max,
                          .memory_windows = interface.rdma->memory_windows};
  for (const net::InterfaceAddress& address : interface.addresses)
    one.addresses.push_back({address.address, address.prefix_length, address.rdma_type});
  return one;
}

std::vector<RankedInterface> host_interfaces(const std::vector<net::Interface>& interfaces,
                                             const std::string& control_address) {
  std::vector<RankedInterface> all;
  for (const net::Interface& interface : interfaces) {
    if (interface.loopback) continue;
    RankedInterface one = ranked(interface);
    for (const net::InterfaceAddress& address : interface.addresses)
      one.carries_control |= !address.link_local &&
                             same_subnet(address.address, control_address, address.prefix_length);
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<RankedInterface> remote_interfaces(const v1::DescribeResponse& peer,
                                               const std::string& control_address) {
  std::vector<RankedInterface> all;
  for (const v1::Interface& interface : peer.interfaces()) {
    RankedInterface one;
    one.name = interface.name();
    one.mtu = interface.mtu();
    one.speed_mbps = interface.speed_mbps();
    one.up = interface.up();
    if (!interface.rdma_device().empty())
      one.rdma = RankedRdma{.device = interface.rdma_device(),
                            .port = interface.rdma_port(),
                            .link_up = interface.rdma_link_up(),
                            .link_state = interface.rdma_link_state(),
                            .link_layer = interface.rdma_link_layer(),
                            .regions_max = interface.rdma_regions_max(),
                            .region_bytes_max = interface.rdma_region_bytes_max(),
                            .memory_windows = interface.rdma_memory_windows()};
    one.carries_control = interface.control_only();
    for (const v1::InterfaceAddress& address : interface.addresses()) {
      if (is_loopback(address.address())) continue;
      one.addresses.push_back({address.address(), address.prefix_length(), address.rdma_type()});
      one.carries_control |= address.address() == control_address;
    }
    all.push_back(std::move(one));
  }
  return all;
}

bool speaks(const v1::Portal& portal, const char* transport) {
  return std::find(portal.transports().begin(), portal.transports().end(), transport) !=
         portal.transports().end();
}

// What a disk wants of the two.
bool wants_iser(const DiskChoices& choices) {
  return choices.transport != "iscsi";
}
bool wants_iscsi(const DiskChoices& choices) {
  return choices.transport != "iser";
}

// The ways over the usable pairs, in their order: those that share the control channel's network
// only where there is no other of their kind.
void add_pairs(const std::vector<RankedPair>& pairs, transport::Kind kind,
               const std::string& last_resort, PathChoice& choice) {
  std::vector<PathCandidate> found, last;
  for (const RankedPair& pair : pairs) {
    if (!pair.usable || !(kind == transport::Kind::iser ? pair.iser : pair.iscsi)) continue;
    (pair.remote_address == last_resort ? last : found)
        .push_back(candidate(kind, pair.remote_address, pair.port, pair.host_address,
                             pair.host_interface));
  }
  if (found.empty()) found = std::move(last);
  for (PathCandidate& one : found) choice.candidates.push_back(std::move(one));
}

const RankedInterface* owner_of(const std::vector<RankedInterface>& interfaces,
                                const std::string& address) {
  for (const RankedInterface& interface : interfaces)
    for (const RankedAddress& own : interface.addresses)
      if (own.address == address) return &interface;
  return nullptr;
}

std::vector<RankedInterface> ranked_all(const std::vector<net::Interface>& ours) {
  std::vector<RankedInterface> all;
  for (const net::Interface& interface : ours) all.push_back(ranked(interface));
  return all;
}

Status check_iser(const DiskChoices& choices, const std::string& where, const PathChoice& choice) {
  if (wants_iscsi(choices) || !choice.candidates.empty()) return {};
  return fail(rpc::Errc::iser_unavailable,
              "iSER was required, but cannot be used to {} ({}: {}); use --transport auto or iscsi",
              where, transport::rdma_reason_of(choice.no_iser->code), choice.no_iser->text);
}

// Of a peer without a common subnet, or on this very box.
Status add_unpaired(const std::vector<net::Interface>& ours, const v1::DescribeResponse& peer,
                    const std::string& control_address, const DiskChoices& choices, bool same_box,
                    PathChoice& choice) {
  const v1::Portal* portal = portal_at(peer, control_address);
  for (const v1::Portal& other : peer.portals()) {
    const bool reachable = same_box || is_loopback(other.address()) == is_loopback(control_address);
    if (portal == nullptr && reachable) portal = &other;
  }
  if (portal == nullptr)
    return fail(rpc::Errc::peer_unreachable, "none of the portals of {} can be reached from here",
                peer.target_name());
  const auto port = static_cast<uint16_t>(portal->port());
  if (wants_iser(choices)) {
    if (!same_box)
      choice.no_iser = NoIser{transport::RdmaErrc::no_common_subnet,
                              "no pair of interfaces shares a subnet with " + peer.target_name()};
    else
      choice.no_iser = rdma_obstacle_here(ours, portal->address());
    if (!choice.no_iser && !speaks(*portal, "iser"))
      choice.no_iser =
          NoIser{transport::RdmaErrc::peer_has_no_iser,
                 fmt::format("{} serves no iSER at {}", peer.target_name(), portal->address())};
    if (!choice.no_iser)
      choice.candidates.push_back(
          candidate(transport::Kind::iser, portal->address(), port, portal->address(), ""));
  }
  if (wants_iscsi(choices))
    choice.candidates.push_back(candidate(transport::Kind::iscsi, portal->address(), port, "", ""));
  choice.explanation =
      same_box ? "the peer is this very box" : "no common subnet: the way to the control address";
  return check_iser(choices, peer.target_name(), choice);
}

}  // namespace

std::optional<NoIser> rdma_obstacle_here(const std::vector<net::Interface>& ours,
                                         const std::string& address) {
  const std::vector<RankedInterface> all = ranked_all(ours);
  const RankedInterface* interface = owner_of(all, address);
  if (interface == nullptr)
    return NoIser{transport::RdmaErrc::address_unreachable, "no interface of this box leads there"};
  return rdma_obstacle(*interface, address, nullptr, {}, {});
}

RankingInput ranking_input(const std::vector<net::Interface>& ours,
                           const v1::DescribeResponse& peer, const std::string& control_address,
                           const InterfaceWishes& wishes) {
  RankingInput input;
  input.peer = peer.target_name();
  input.host = host_interfaces(ours, control_address);
  input.remote = remote_interfaces(peer, control_address);
  for (const v1::Portal& portal : peer.portals())
    input.portals.push_back({portal.address(), static_cast<uint16_t>(portal.port()),
                             speaks(portal, "iscsi"), speaks(portal, "iser")});
  input.wishes = wishes;
  return input;
}

Result<PathChoice> choose_paths(const std::vector<net::Interface>& ours,
                                const v1::DescribeResponse& peer,
                                const std::string& control_address, const DiskChoices& choices) {
  if (peer.portals().empty()) {
    return fail(rpc::Errc::peer_unreachable,
                "{} has no portal that can be reached: its configuration names none, or they are "
                "all link-local",
                peer.target_name());
  }
  const bool wishes = !choices.host_interface.empty() || !choices.remote_interface.empty();
  PathChoice choice;
  // A peer on this very box: its addresses are ours, and the way is inside the kernel.
  const bool same_box = is_loopback(control_address) || has_address(ours, control_address);
  std::vector<RankedPair> pairs;
  if (!same_box || wishes)
    pairs = rank_interface_pairs(ranking_input(ours, peer, control_address,
                                               {choices.host_interface, choices.remote_interface}));
  const RankedPair* best = !pairs.empty() && pairs.front().usable ? &pairs.front() : nullptr;
  if (best == nullptr) {
    if (wishes)
      return fail(
          rpc::Errc::peer_unreachable,
          "no usable pair of interfaces with {}{}{}{}; `vjbod interfaces {}` shows them all",
          choices.host_interface.empty() ? "" : choices.host_interface + " here",
          choices.host_interface.empty() || choices.remote_interface.empty() ? "" : " and ",
          choices.remote_interface, choices.remote_interface.empty() ? "" : " of the peer",
          peer.target_name());
    if (auto added = add_unpaired(ours, peer, control_address, choices, same_box, choice); !added)
      return fail(added.error());
    return choice;
  }
  const std::string last_resort = wishes ? "" : control_address;
  if (wants_iser(choices)) add_pairs(pairs, transport::Kind::iser, last_resort, choice);
  if (choice.candidates.empty() && wants_iser(choices)) choice.no_iser = best->no_iser;
  if (wants_iscsi(choices)) add_pairs(pairs, transport::Kind::iscsi, last_resort, choice);
  if (auto checked = check_iser(choices, peer.target_name(), choice); !checked)
    return fail(checked.error());
  if (choice.candidates.empty())
    return fail(rpc::Errc::peer_unreachable, "{} serves no iSCSI where it can be reached from here",
                peer.target_name());
  const transport::Endpoint& first = choice.candidates.front().endpoint;
  const auto taken = std::find_if(pairs.begin(), pairs.end(), [&](const RankedPair& pair) {
    return pair.host_interface == first.interface_name && pair.remote_address == first.address;
  });
  choice.host_interface = taken->host_interface;
  choice.remote_interface = taken->remote_interface;
  choice.explanation = taken->explanation;
  return choice;
}

Result<PathChoice> choose_foreign_paths(const std::vector<net::Interface>& ours,
                                        const std::string& address, uint16_t port,
                                        const std::string& source_address,
                                        const DiskChoices& choices) {
  PathChoice choice;
  choice.host_interface = choices.host_interface;
  if (wants_iser(choices)) {
    choice.no_iser = rdma_obstacle_here(ours, source_address);
    if (!choice.no_iser)
      choice.candidates.push_back(
          candidate(transport::Kind::iser, address, port, source_address, choices.host_interface));
  }
  if (wants_iscsi(choices))
    choice.candidates.push_back(
        candidate(transport::Kind::iscsi, address, port, "", choices.host_interface));
  if (auto checked = check_iser(choices, address, choice); !checked) return fail(checked.error());
  return choice;
}

}  // namespace vjbod::initiator
