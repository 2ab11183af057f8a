// SPDX-License-Identifier: Apache-2.0
// Where this box can be reached, given what it listens on and what its interfaces are. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/net/interfaces.h"

namespace vjbod::target {

struct ReachablePortal {
  std::string address;  // numeric
  uint16_t port = 0;
  bool iscsi = true, iser = false;  // what is spoken there
  bool operator==(const ReachablePortal&) const = default;
};

// A listening address of "::" or "0.0.0.0" stands for all addresses of interfaces that are up, of
// its family ("::" takes IPv4 too). Never a link-local one; a loopback one only where it was asked
// for by itself or where there is nothing else, as on a box that plays both parts. IPv4 first.
std::vector<ReachablePortal> reachable_portals(const std::vector<ReachablePortal>& listening,
                                               const std::vector<net::Interface>& interfaces);

// What the portals that are reached speak, by those that are configured: iSER where it is wanted
// and an RDMA device of this box has the address.
void mark_transports(const std::vector<ReachablePortal>& configured,
                     const std::vector<net::Interface>& interfaces,
                     std::vector<ReachablePortal>& portals);

}  // namespace vjbod::target
