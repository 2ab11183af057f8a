// SPDX-License-Identifier: Apache-2.0
// Which interface of this box should talk to which of the peer's: every pair, best first, with the
// reason for its place and whether iSER can be used over it. Pure: what both boxes report goes in,
// a list that a person can read comes out. Whatever chooses or explains a way takes it from here.
//
// Order: usable pairs before unusable ones; then RDMA at both ends; not the interface that carries
// the control channel; equal MTU; the higher of the slower ends' speeds; the larger MTU; names, so
// that the order is always the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/transport/rdma_errc.h"

namespace vjbod::initiator {

struct RankedAddress {
  std::string address;  // numeric IPv4 or IPv6
  uint32_t prefix_length = 0;
  std::string rdma_type{};  // "RoCE v2", "InfiniBand", …; empty: RDMA cannot use it
};

struct RankedRdma {
  std::string device;
  uint32_t port = 0;
  bool link_up = false;
  std::string link_state, link_layer;
  uint64_t regions_max = 0, region_bytes_max = 0;  // 0: unknown
  bool memory_windows = false;
};

struct RankedInterface {
  std::string name;
  std::vector<RankedAddress> addresses;
  uint32_t mtu = 0;
  uint64_t speed_mbps = 0;  // 0: unknown
  bool up = false;
  std::optional<RankedRdma> rdma;
  bool carries_control = false;
};

// Where the peer serves its LUNs.
struct RankedPortal {
  std::string address;
  uint16_t port = 0;
  bool iscsi = true, iser = false;
};

// What the user insists on; an empty name leaves the choice to us.
struct InterfaceWishes {
  std::string host_interface, remote_interface;
};

struct RankingInput {
  std::string peer;  // its name, for the sentences
  std::vector<RankedInterface> host, remote;
  std::vector<RankedPortal> portals;
  InterfaceWishes wishes;
};

// Why iSER is not used where it could be wished for.
struct NoIser {
  transport::RdmaErrc code{};
  std::string text;  // "no RDMA device on eth0 (nas2)"
  // No end is known to have RDMA: iSCSI is what such boxes are meant to use.
  bool without_rdma = false;
};

struct RankedPair {
  std::string host_interface, remote_interface;
  std::string host_address, remote_address;  // of the same subnet; empty when there is none
  uint16_t port = 0;                         // of the peer's portal there; 0: there is none
  bool usable = false;
  bool iscsi = false;             // spoken at the portal
  bool iser = false;              // RDMA at both ends, and spoken at the portal
  std::optional<NoIser> no_iser;  // when it is not
  bool control = false;           // shared with the control channel
  bool equal_mtu = false;
  uint32_t host_mtu = 0, remote_mtu = 0;
  uint64_t speed_mbps = 0;  // of the slower end; 0: unknown
  std::string explanation;
};

// Every pair of interfaces that have addresses; those that the wishes exclude come last and are not
// usable.
std::vector<RankedPair> rank_interface_pairs(const RankingInput& input);

// What keeps iSER from being used between an interface of this box and one of the peer's, in
// whatever order they are found; nothing when both ends can. Of one end: `theirs` null.
std::optional<NoIser> rdma_obstacle(const RankedInterface& ours, const std::string& our_address,
                                    const RankedInterface* theirs, const std::string& their_address,
                                    const std::string& peer);

// Whether two numeric addresses of one family agree in their first `prefix_length` bits.
bool same_subnet(const std::string& a, const std::string& b, uint32_t prefix_length);

}  // namespace vjbod::initiator
