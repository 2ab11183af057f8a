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

PathCandidate candidate(const v1::Portal& portal, const std::string& source,
                        const std::string& interface) {
  PathCandidate path;
  path.kind = transport::Kind::iscsi;
  path.endpoint.address = portal.address();
  path.endpoint.port = static_cast<uint16_t>(portal.port());
  path.endpoint.source_address = source;
  path.endpoint.interface_name = interface;
  return path;
}

}  // namespace

std::vector<RankedInterface> host_interfaces(const std::vector<net::Interface>& interfaces,
                                             const std::string& control_address) {
  std::vector<RankedInterface> ranked;
  for (const net::Interface& interface : interfaces) {
    if (interface.loopback) continue;
    RankedInterface one;
    one.name = interface.name;
    one.mtu = interface.mtu;
    one.speed_mbps = interface.speed_mbps;
    one.up = interface.up;
    if (interface.rdma) one.rdma_device = interface.rdma->device;
    for (const net::InterfaceAddress& address : interface.addresses) {
      one.addresses.push_back({address.address, address.prefix_length});
      one.carries_control |= !address.link_local &&
                             same_subnet(address.address, control_address, address.prefix_length);
    }
    ranked.push_back(std::move(one));
  }
  return ranked;
}

std::vector<RankedInterface> remote_interfaces(const v1::DescribeResponse& peer,
                                               const std::string& control_address) {
  std::vector<RankedInterface> ranked;
  for (const v1::Interface& interface : peer.interfaces()) {
    RankedInterface one;
    one.name = interface.name();
    one.mtu = interface.mtu();
    one.speed_mbps = interface.speed_mbps();
    one.up = interface.up();
    one.rdma_device = interface.rdma_device();
    one.carries_control = interface.control_only();
    for (const v1::InterfaceAddress& address : interface.addresses()) {
      if (is_loopback(address.address())) continue;
      one.addresses.push_back({address.address(), address.prefix_length()});
      one.carries_control |= address.address() == control_address;
    }
    ranked.push_back(std::move(one));
  }
  return ranked;
}

Result<PathChoice> choose_paths(const std::vector<net::Interface>& ours,
                                const v1::DescribeResponse& peer,
                                const std::string& control_address, const DiskChoices& choices) {
  if (choices.transport == "iser") {
    return fail(rpc::Errc::iser_unavailable,
                "iSER was required, but this version carries data over iSCSI only; use --transport "
                "auto or iscsi");
  }
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
  if (!same_box || wishes) {
    const auto host = host_interfaces(ours, control_address);
    const auto pairs = rank_interface_pairs(host, remote_interfaces(peer, control_address),
                                            {choices.host_interface, choices.remote_interface});
    std::vector<PathCandidate> last_resort;
    for (const RankedPair& pair : pairs) {
      const v1::Portal* portal = pair.usable ? portal_at(peer, pair.remote_address) : nullptr;
      if (portal == nullptr) continue;
      const bool control = pair.remote_address == control_address && !wishes;
      (control ? last_resort : choice.candidates)
          .push_back(candidate(*portal, pair.host_address, pair.host_interface));
      if (choice.host_interface.empty()) {
        choice.host_interface = pair.host_interface;
        choice.remote_interface = pair.remote_interface;
        choice.explanation = pair.explanation;
      }
    }
    if (choice.candidates.empty()) choice.candidates = std::move(last_resort);
    if (choice.candidates.empty() && wishes) {
      return fail(
          rpc::Errc::peer_unreachable,
          "no usable pair of interfaces with {}{}{}{}; `vjbod interfaces {}` shows them all",
          choices.host_interface.empty() ? "" : choices.host_interface + " here",
          choices.host_interface.empty() || choices.remote_interface.empty() ? "" : " and ",
          choices.remote_interface, choices.remote_interface.empty() ? "" : " of the peer",
          peer.target_name());
    }
  }
  if (choice.candidates.empty()) {
    const v1::Portal* portal = portal_at(peer, control_address);
    for (const v1::Portal& other : peer.portals()) {
      const bool reachable =
          same_box || is_loopback(other.address()) == is_loopback(control_address);
      if (portal == nullptr && reachable) portal = &other;
    }
    if (portal == nullptr) {
      return fail(rpc::Errc::peer_unreachable, "none of the portals of {} can be reached from here",
                  peer.target_name());
    }
    choice.candidates.push_back(candidate(*portal, "", ""));
    choice.explanation =
        same_box ? "the peer is this very box" : "no common subnet: the way to the control address";
  }
  return choice;
}

}  // namespace vjbod::initiator
