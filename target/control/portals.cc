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
      add(portals, {address.address, any.port, any.iscsi, any.iser});
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

void mark_transports(const std::vector<ReachablePortal>& configured,
                     const std::vector<net::Interface>& interfaces,
                     std::vector<ReachablePortal>& portals) {
  const auto has_rdma = [&](const std::string& wanted) {
    for (const net::Interface& interface : interfaces)
      for (const net::InterfaceAddress& address : interface.addresses)
        if (address.address == wanted && !address.rdma_type.empty())
          return interface.rdma && interface.rdma->link_up;
    return false;
  };
  for (ReachablePortal& portal : portals) {
    for (const ReachablePortal& known : configured) {
      // A port of zero stands for the one that was free.
      const bool same = (known.port == portal.port || known.port == 0) &&
                        (known.address == portal.address || is_any(known.address));
      if (!same) continue;
      portal.iscsi = known.iscsi;
      portal.iser = known.iser && has_rdma(portal.address);
      if (known.address == portal.address) break;
    }
  }
}

}  // namespace vjbod::target
