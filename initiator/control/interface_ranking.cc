// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/interface_ranking.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include <arpa/inet.h>
#include <fmt/format.h>

namespace vjbod::initiator {

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

// The first addresses of the two interfaces that lie in one subnet; link-local ones do not count.
void find_common_subnet(const RankedInterface& host, const RankedInterface& remote,
                        RankedPair& pair) {
  for (const RankedAddress& ours : host.addresses) {
    if (is_link_local(ours.address)) continue;
    for (const RankedAddress& theirs : remote.addresses) {
      if (is_link_local(theirs.address)) continue;
      const uint32_t prefix = std::max(ours.prefix_length, theirs.prefix_length);
      if (!same_subnet(ours.address, theirs.address, prefix)) continue;
      pair.host_address = ours.address;
      pair.remote_address = theirs.address;
      return;
    }
  }
}

void judge_iser(const RankedInterface& host, const RankedInterface& remote, RankedPair& pair) {
  if (pair.host_address.empty()) {
    pair.iser_reason_code = "no-subnet";
    pair.iser_reason_text = "the two interfaces share no subnet";
  } else if (host.rdma_device.empty() && remote.rdma_device.empty()) {
    pair.iser_reason_code = "no-rdma-device";
    pair.iser_reason_text =
        fmt::format("no RDMA device on {} here nor on {} of the peer", host.name, remote.name);
  } else if (host.rdma_device.empty() || remote.rdma_device.empty()) {
    const bool ours_lacks = host.rdma_device.empty();
    pair.iser_reason_code = "rdma-one-side";
    pair.iser_reason_text =
        fmt::format("no RDMA device on {} {}", ours_lacks ? host.name : remote.name,
                    ours_lacks ? "here" : "of the peer");
  } else {
    pair.iser = true;
  }
}

struct Judged {
  RankedPair pair;
  bool control = false, equal_mtu = false;
  uint64_t speed_mbps = 0;
  uint32_t mtu = 0;

  auto order() const {
    return std::tuple(!pair.usable, !pair.iser, control, !equal_mtu, ~speed_mbps, ~mtu,
                      pair.host_interface, pair.remote_interface);
  }
};

std::string explain(const RankedInterface& host, const RankedInterface& remote,
                    const InterfaceWishes& wishes, const Judged& judged) {
  const RankedPair& pair = judged.pair;
  if (!wishes.host_interface.empty() && host.name != wishes.host_interface) {
    return fmt::format("not used: the disk asks for {} here", wishes.host_interface);
  }
  if (!wishes.remote_interface.empty() && remote.name != wishes.remote_interface) {
    return fmt::format("not used: the disk asks for {} of the peer", wishes.remote_interface);
  }
  if (!host.up) return fmt::format("not usable: {} is down here", host.name);
  if (!remote.up) return fmt::format("not usable: {} of the peer is down", remote.name);
  if (pair.host_address.empty()) return "not usable: no common subnet";
  std::string text = pair.iser ? "same subnet, RDMA at both ends" : "same subnet";
  text += judged.equal_mtu ? fmt::format(", MTU {}", host.mtu)
                           : fmt::format(", MTU differs ({} here, {} there)", host.mtu, remote.mtu);
  if (judged.speed_mbps > 0) text += fmt::format(", {} Mbit/s", judged.speed_mbps);
  if (judged.control) text += ", shared with the control channel";
  return text;
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

std::vector<RankedPair> rank_interface_pairs(const std::vector<RankedInterface>& host,
                                             const std::vector<RankedInterface>& remote,
                                             const InterfaceWishes& wishes) {
  std::vector<Judged> judged;
  for (const RankedInterface& ours : host) {
    for (const RankedInterface& theirs : remote) {
      if (ours.addresses.empty() || theirs.addresses.empty()) continue;
      Judged one;
      one.pair.host_interface = ours.name;
      one.pair.remote_interface = theirs.name;
      find_common_subnet(ours, theirs, one.pair);
      judge_iser(ours, theirs, one.pair);
      const bool wished =
          (wishes.host_interface.empty() || wishes.host_interface == ours.name) &&
          (wishes.remote_interface.empty() || wishes.remote_interface == theirs.name);
      one.pair.usable = wished && ours.up && theirs.up && !one.pair.host_address.empty();
      one.control = ours.carries_control || theirs.carries_control;
      one.equal_mtu = ours.mtu == theirs.mtu;
      one.speed_mbps = std::min(ours.speed_mbps, theirs.speed_mbps);
      one.mtu = std::min(ours.mtu, theirs.mtu);
      one.pair.explanation = explain(ours, theirs, wishes, one);
      judged.push_back(std::move(one));
    }
  }
  std::sort(judged.begin(), judged.end(),
            [](const Judged& a, const Judged& b) { return a.order() < b.order(); });
  std::vector<RankedPair> pairs;
  pairs.reserve(judged.size());
  for (Judged& one : judged) pairs.push_back(std::move(one.pair));
  return pairs;
}

}  // namespace vjbod::initiator
