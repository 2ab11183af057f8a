// SPDX-License-Identifier: Apache-2.0
// The RDMA ports of this box and what they can do for an interface, as sysfs shows them: hardware
// and Soft-RoCE, also below VLAN, bond and bridge interfaces, whose addresses the kernel enters
// into the port's table (RoCE) under their own names. Reads files only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vjbod::net {

enum class RdmaFabric : uint8_t { infiniband, roce, iwarp };
const char* name_of(RdmaFabric fabric);  // "InfiniBand", "RoCE", "iWARP"

// An entry of a port's address table (GID table).
struct RdmaGid {
  std::string address;    // as an IP address
  std::string interface;  // whose address it is; empty where the kernel does not tell
  bool roce_v2 = false;
};

struct RdmaPort {
  std::string device;
  uint32_t number = 0;  // from 1
  RdmaFabric fabric = RdmaFabric::roce;
  std::string state;       // "ACTIVE", "DOWN", …
  std::string link_layer;  // "Ethernet", "InfiniBand"
  std::vector<RdmaGid> gids;
  std::vector<std::string> interfaces;  // that belong to the port itself

  bool link_up() const { return state == "ACTIVE"; }
};

// All ports, in the order of their names. `sysfs`: "/sys", or a folder that looks like it.
std::vector<RdmaPort> read_rdma_ports(const std::string& sysfs);

// The interfaces below a VLAN, bond or bridge, all the way down; without the interface itself.
std::vector<std::string> lower_interfaces(const std::string& sysfs, const std::string& interface);

// The port that carries RDMA of an interface with these addresses: the one that knows most of them
// and has a link. Null: there is none.
const RdmaPort* find_rdma_port(const std::vector<RdmaPort>& ports, const std::string& interface,
                               const std::vector<std::string>& addresses,
                               const std::vector<std::string>& lower);

// By what RDMA can use the address over this port: "RoCE v2", "RoCE v1", "InfiniBand", "iWARP";
// empty: it cannot.
std::string rdma_address_type(const RdmaPort& port, const std::string& interface,
                              const std::string& address, const std::vector<std::string>& lower);

}  // namespace vjbod::net
