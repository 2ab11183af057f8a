// SPDX-License-Identifier: Apache-2.0
#include "target/control/portals.h"

#include <algorithm>

namespace vjbod::target {

namespace {

bool is_ipv6(const std::string& address) {
  return address.find(':') != std::string::npos;
}

bool is_any(const std::string& address) {
  return address == "::" || address == "0.0.0.0";
}

void add(std::vector<ReachablePortal>& portals, ReachablePortal portal) {
  if (std::find(portals.begin(), portals.end(), portal) == portals.end())
    portals.push_back(std::move(portal));
}

void expand(const ReachablePortal& any, const std::vector<net::Interface>& interfaces,
            bool loopback, std::vector<ReachablePortal>& portals) {
  for (const net::Interface& interface : interfaces) {
    if (!interface.up || interface.loopback != loopback) continue;
    for (const net::InterfaceAddress& address : interface.addresses) {
      if (address.link_local || (is_ipv6(address.address) && !is_ipv6(any.address))) continue;
      add(portals, {address.address, any.port});
    }
  }
}

}  // namespace

std::vector<ReachablePortal> reachable_portals(const std::vector<ReachablePortal>& listening,
                                               const std::vector<net::Interface>& interfaces) {
  std::vector<ReachablePortal> portals;
  for (const ReachablePortal& portal : listening) {
    if (is_any(portal.address))
      expand(portal, interfaces, false, portals);
    else
      add(portals, portal);
  }
  if (portals.empty()) {
    for (const ReachablePortal& portal : listening) expand(portal, interfaces, true, portals);
  }
  std::stable_partition(portals.begin(), portals.end(),
                        [](const ReachablePortal& portal) { return !is_ipv6(portal.address); });
  return portals;
}

}  // namespace vjbod::target
