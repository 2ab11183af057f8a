// SPDX-License-Identifier: Apache-2.0
// The network interfaces of this box, as the kernel shows them. Any thread; does system calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace vjbod::net {

struct InterfaceAddress {
  std::string address;  // numeric, without zone
  uint32_t prefix_length = 0;
  bool link_local = false;
  std::string rdma_type{};  // by what RDMA can use it: "RoCE v2", "InfiniBand", …; empty: it cannot
};

// The RDMA port that carries an interface.
struct InterfaceRdma {
  std::string device;  // "mlx5_0", "rxe0"
  uint32_t port = 0;
  std::string link_layer;  // "Ethernet", "InfiniBand"
  bool link_up = false;
  std::string link_state;  // "ACTIVE", "DOWN", …
  // Zero: the device does not tell, or may not be opened.
  uint64_t regions_max = 0, region_bytes_max = 0;
  bool memory_windows = false;  // of type 2
};

struct Interface {
  std::string name;
  uint32_t index = 0;
  std::vector<InterfaceAddress> addresses;
  uint32_t mtu = 0;
  uint64_t speed_mbps = 0;  // 0: unknown
  bool up = false;          // administratively up and with a carrier
  bool loopback = false;
  std::optional<InterfaceRdma> rdma;
};

// In the kernel's order. Loopback is included; callers leave it out where it has no place.
Result<std::vector<Interface>> list_interfaces();

// Adds what RDMA there is to interfaces that are known otherwise. `sysfs`: "/sys", or a folder that
// looks like it.
void add_rdma(const std::string& sysfs, std::vector<Interface>& interfaces);

}  // namespace vjbod::net
