// SPDX-License-Identifier: Apache-2.0
// Which interface of this box should talk to which of the peer's: every pair, best first, with the
// reason for its place. Pure: what both boxes report goes in, a list that a person can read comes
// out.
//
// Order: usable pairs before unusable ones; then RDMA at both ends; not the interface that carries
// the control channel; equal MTU; the higher of the slower ends' speeds; the larger MTU; names, so
// that the order is always the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vjbod::initiator {

struct RankedAddress {
  std::string address;  // numeric IPv4 or IPv6
  uint32_t prefix_length = 0;
};

struct RankedInterface {
  std::string name;
  std::vector<RankedAddress> addresses;
  uint32_t mtu = 0;
  uint64_t speed_mbps = 0;  // 0: unknown
  bool up = false;
  std::string rdma_device;  // empty: none
  bool carries_control = false;
};

struct RankedPair {
  std::string host_interface, remote_interface;
  std::string host_address, remote_address;  // of the same subnet; empty when there is none
  bool usable = false;
  bool iser = false;
  std::string iser_reason_code;  // why not: "no-rdma-device", "rdma-one-side", "no-subnet"
  std::string iser_reason_text;
  std::string explanation;
};

// What the user insists on; an empty name leaves the choice to us.
struct InterfaceWishes {
  std::string host_interface, remote_interface;
};

// Every pair of interfaces that have addresses; those that the wishes exclude come last and are not
// usable.
std::vector<RankedPair> rank_interface_pairs(const std::vector<RankedInterface>& host,
                                             const std::vector<RankedInterface>& remote,
                                             const InterfaceWishes& wishes);

// Whether two numeric addresses of one family agree in their first `prefix_length` bits.
bool same_subnet(const std::string& a, const std::string& b, uint32_t prefix_length);

}  // namespace vjbod::initiator
