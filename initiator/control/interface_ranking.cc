// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/interface_ranking.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include <arpa/inet.h>
#include <fmt/format.h>

namespace vjbod::initiator {

using transport::RdmaErrc;

namespace {

struct NumericAddress {
  std::array<unsigned char, 16> bytes{};
  size_t length = 0;
};

std::optional<NumericAddress> parse(const std::string& text) {
  NumericAddress address;
  if (inet_pton(AF_INET, text.c_str(), address.bytes.data()) == 1) {
    address.length = 4;
    return address;
  }
  if (inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) {
    address.length = 16;
    return address;
  }
  return std::nullopt;
}

bool is_link_local(const std::string& text) {
  const auto address = parse(text);
  if (!address) return false;
  if (address->length == 4) return address->bytes[0] == 169 && address->bytes[1] == 254;
  return address->bytes[0] == 0xfe && (address->bytes[1] & 0xc0) == 0x80;
}

// What can be said of one end without knowing the other.
std::optional<NoIser> obstacle_at(const RankedInterface& interface, const std::string& address,
                                  const std::string& where) {
  const auto known = std::find_if(interface.addresses.begin(), interface.addresses.end(),
                                  [&](const RankedAddress& one) { return one.address == address; });
  if (!interface.rdma)
    return NoIser{RdmaErrc::no_rdma_device,
                  fmt::format("no RDMA device on {} ({})", interface.name, where), false};
  if (!interface.rdma->link_up)
    return NoIser{
        RdmaErrc::rdma_link_down,
        fmt::format(
            "RDMA device {} on {} ({}) has no link{}", interface.rdma->device, interface.name,
            where,
            interface.rdma->link_state.empty() ? "" : ": it is " + interface.rdma->link_state)};
  if (known == interface.addresses.end() || known->rdma_type.empty())
    return NoIser{RdmaErrc::no_gid,
                  fmt::format("RDMA device {} on {} ({}) has no entry for {}",
                              interface.rdma->device, interface.name, where, address)};
  return std::nullopt;
}

const std::string& rdma_type_of(const RankedInterface& interface, const std::string& address) {
  static const std::string none;
  for (const RankedAddress& one : interface.addresses)
    if (one.address == address) return one.rdma_type;
  return none;
}

const RankedPortal* portal_at(const RankingInput& input, const std::string& address) {
  for (const RankedPortal& portal : input.portals)
    if (portal.address == address) return &portal;
  return nullptr;
}

// The addresses of the two interfaces that lie in one subnet: where the peer serves, and RDMA
// before others; else the first. Link-local ones do not count.
void find_common_subnet(const RankingInput& input, const RankedInterface& host,
                        const RankedInterface& remote, RankedPair& pair) {
  int best = -1;
  for (const RankedAddress& ours : host.addresses) {
    if (is_link_local(ours.address)) continue;
    for (const RankedAddress& theirs : remote.addresses) {
      if (is_link_local(theirs.address)) continue;
      const uint32_t prefix = std::max(ours.prefix_length, theirs.prefix_length);
      if (!same_subnet(ours.address, theirs.address, prefix)) continue;
      const RankedPortal* portal = portal_at(input, theirs.address);
      const bool rdma = !ours.rdma_type.empty() && ours.rdma_type == theirs.rdma_type;
      const int worth = (portal != nullptr ? 2 : 0) + (rdma ? 1 : 0);
      if (worth <= best) continue;
      best = worth;
      pair.host_address = ours.address;
      pair.remote_address = theirs.address;
      pair.port = portal != nullptr ? portal->port : 0;
      pair.iscsi = portal != nullptr && portal->iscsi;
    }
  }
}

void judge_iser(const RankingInput& input, const RankedInterface& host,
                const RankedInterface& remote, RankedPair& pair) {
  if (pair.host_address.empty()) {
    pair.no_iser = NoIser{
        RdmaErrc::no_common_subnet,
        fmt::format("{} (here) and {} ({}) share no subnet", host.name, remote.name, input.peer)};
    return;
  }
  pair.no_iser = rdma_obstacle(host, pair.host_address, &remote, pair.remote_address, input.peer);
  const RankedPortal* portal = portal_at(input, pair.remote_address);
  if (!pair.no_iser && (portal == nullptr || !portal->iser))
    pair.no_iser = NoIser{RdmaErrc::peer_has_no_iser,
                          fmt::format("{} serves no iSER at {}", input.peer, pair.remote_address)};
  pair.iser = !pair.no_iser;
}

auto order_of(const RankedPair& pair) {
  return std::tuple(!pair.usable, !pair.iser, pair.control, !pair.equal_mtu, ~pair.speed_mbps,
                    ~std::min(pair.host_mtu, pair.remote_mtu), pair.host_interface,
                    pair.remote_interface);
}

std::string explain(const RankingInput& input, const RankedInterface& host,
                    const RankedInterface& remote, const RankedPair& pair) {
  if (!input.wishes.host_interface.empty() && host.name != input.wishes.host_interface)
    return fmt::format("not used: the disk asks for {} here", input.wishes.host_interface);
  if (!input.wishes.remote_interface.empty() && remote.name != input.wishes.remote_interface)
    return fmt::format("not used: the disk asks for {} of the peer", input.wishes.remote_interface);
  if (!host.up) return fmt::format("not usable: {} is down here", host.name);
  if (!remote.up) return fmt::format("not usable: {} of the peer is down", remote.name);
  if (pair.host_address.empty()) return "not usable: no common subnet";
  if (pair.port == 0)
    return fmt::format("not usable: the peer serves nothing at {}", pair.remote_address);
  std::string text = "same subnet";
  if (pair.iser)
    text += fmt::format(", RDMA at both ends ({})", rdma_type_of(host, pair.host_address));
  text += pair.equal_mtu
              ? fmt::format(", MTU {}", pair.host_mtu)
              : fmt::format(", MTU differs ({} here, {} there)", pair.host_mtu, pair.remote_mtu);
  if (pair.speed_mbps > 0) text += fmt::format(", {} Mbit/s", pair.speed_mbps);
  if (pair.control) text += ", shared with the control channel";
  return text;
}

RankedPair judge(const RankingInput& input, const RankedInterface& host,
                 const RankedInterface& remote) {
  const InterfaceWishes& wishes = input.wishes;
  RankedPair pair;
  pair.host_interface = host.name;
  pair.remote_interface = remote.name;
  find_common_subnet(input, host, remote, pair);
  judge_iser(input, host, remote, pair);
  const bool wished = (wishes.host_interface.empty() || wishes.host_interface == host.name) &&
                      (wishes.remote_interface.empty() || wishes.remote_interface == remote.name);
  pair.usable = wished && host.up && remote.up && pair.port != 0;
  pair.control = host.carries_control || remote.carries_control;
  pair.host_mtu = host.mtu;
  pair.remote_mtu = remote.mtu;
  pair.equal_mtu = host.mtu == remote.mtu;
  pair.speed_mbps = std::min(host.speed_mbps, remote.speed_mbps);
  pair.explanation = explain(input, host, remote, pair);
  return pair;
}

}  // namespace

bool same_subnet(const std::string& a, const std::string& b, uint32_t prefix_length) {
  const auto left = parse(a), right = parse(b);
  if (!left || !right || left->length != right->length) return false;
  if (prefix_length > left->length * 8) return false;
  for (uint32_t bit = 0; bit < prefix_length; ++bit) {
    const unsigned mask = 0x80u >> (bit % 8);
    if (((left->bytes[bit / 8] ^ right->bytes[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

std::optional<NoIser> rdma_obstacle(const RankedInterface& ours, const std::string& our_address,
                                    const RankedInterface* theirs, const std::string& their_address,
                                    const std::string& peer) {
  auto here = obstacle_at(ours, our_address, "here");
  if (theirs == nullptr) {
    if (here) here->without_rdma = here->code == RdmaErrc::no_rdma_device;
    return here;
  }
  auto there = obstacle_at(*theirs, their_address, peer);
  if (here && there && here->code == there->code && here->code == RdmaErrc::no_rdma_device) {
    here->without_rdma = true;
    here->text += fmt::format(" nor on {} ({})", theirs->name, peer);
  }
  if (here) return here;
  if (there) return there;
  const std::string& our_type = rdma_type_of(ours, our_address);
  const std::string& their_type = rdma_type_of(*theirs, their_address);
  if (our_type != their_type)
    return NoIser{RdmaErrc::no_gid, fmt::format("{} has {} and {} has {}", our_address, our_type,
                                                their_address, their_type)};
  return std::nullopt;
}

std::vector<RankedPair> rank_interface_pairs(const RankingInput& input) {
  std::vector<RankedPair> pairs;
  for (const RankedInterface& ours : input.host)
    for (const RankedInterface& theirs : input.remote)
      if (!ours.addresses.empty() && !theirs.addresses.empty())
        pairs.push_back(judge(input, ours, theirs));
  std::sort(pairs.begin(), pairs.end(),
            [](const RankedPair& a, const RankedPair& b) { return order_of(a) < order_of(b); });
  return pairs;
}

}  // namespace vjbod::initiator
