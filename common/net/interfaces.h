// SPDX-License-Identifier: Apache-2.0
// The network interfaces of this box, as the kernel shows them. Any thread; does system calls.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace vjbod::net {

struct InterfaceAddress {
  std::string address;  // numeric, without zone
  uint32_t prefix_length = 0;
  bool link_local = false;
};

struct Interface {
  std::string name;
  uint32_t index = 0;
  std::vector<InterfaceAddress> addresses;
  uint32_t mtu = 0;
  uint64_t speed_mbps = 0;  // 0: unknown
  bool up = false;          // administratively up and with a carrier
  bool loopback = false;
  std::string rdma_device;  // empty: none
};

// In the kernel's order. Loopback is included; callers leave it out where it has no place.
Result<std::vector<Interface>> list_interfaces();

}  // namespace vjbod::net
