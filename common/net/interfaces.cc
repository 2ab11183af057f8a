// SPDX-License-Identifier: Apache-2.0
#include "common/net/interfaces.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "common/base/unique_fd.h"
#include "common/net/rdma_limits.h"
#include "common/net/rdma_ports.h"

namespace vjbod::net {

namespace {

uint32_t prefix_length(const uint8_t* mask, size_t size) {
  uint32_t length = 0;
  for (size_t i = 0; i < size; ++i) length += static_cast<uint32_t>(std::popcount(mask[i]));
  return length;
}

void add_address(Interface& interface, const ifaddrs& entry) {
  char text[INET6_ADDRSTRLEN] = {};
  InterfaceAddress address;
  if (entry.ifa_addr->sa_family == AF_INET) {
    const auto& socket_address = *reinterpret_cast<const sockaddr_in*>(entry.ifa_addr);
    inet_ntop(AF_INET, &socket_address.sin_addr, text, sizeof text);
    address.link_local = (ntohl(socket_address.sin_addr.s_addr) >> 16) == 0xa9fe;  // RFC 3927
    if (entry.ifa_netmask != nullptr) {
      const auto& mask = *reinterpret_cast<const sockaddr_in*>(entry.ifa_netmask);
      address.prefix_length = prefix_length(reinterpret_cast<const uint8_t*>(&mask.sin_addr), 4);
    }
  } else {
    const auto& socket_address = *reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr);
    inet_ntop(AF_INET6, &socket_address.sin6_addr, text, sizeof text);
    address.link_local = IN6_IS_ADDR_LINKLOCAL(&socket_address.sin6_addr);
    if (entry.ifa_netmask != nullptr) {
      const auto& mask = *reinterpret_cast<const sockaddr_in6*>(entry.ifa_netmask);
      address.prefix_length = prefix_length(mask.sin6_addr.s6_addr, 16);
    }
  }
  address.address = text;
  interface.addresses.push_back(std::move(address));
}

ifreq request_for(const std::string& name) {
  ifreq request{};
  std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  return request;
}

uint32_t read_mtu(int socket, const std::string& name) {
  ifreq request = request_for(name);
  return ioctl(socket, SIOCGIFMTU, &request) == 0 ? static_cast<uint32_t>(request.ifr_mtu) : 0;
}

// ETHTOOL_GLINKSETTINGS takes two calls: the first tells how long the masks behind the header are.
uint64_t read_speed_mbps(int socket, const std::string& name) {
  constexpr size_t mask_words_max = 127;  // the count is a signed byte
  alignas(ethtool_link_settings) unsigned char
      buffer[sizeof(ethtool_link_settings) + 3 * mask_words_max * sizeof(uint32_t)] = {};
  auto& settings = *reinterpret_cast<ethtool_link_settings*>(buffer);
  ifreq request = request_for(name);
  request.ifr_data = reinterpret_cast<char*>(&settings);
  settings.cmd = ETHTOOL_GLINKSETTINGS;
  if (ioctl(socket, SIOCETHTOOL, &request) != 0 || settings.link_mode_masks_nwords >= 0) return 0;
  settings.cmd = ETHTOOL_GLINKSETTINGS;
  settings.link_mode_masks_nwords = static_cast<int8_t>(-settings.link_mode_masks_nwords);
  if (ioctl(socket, SIOCETHTOOL, &request) != 0) return 0;
  return settings.speed == static_cast<uint32_t>(SPEED_UNKNOWN) ? 0 : settings.speed;
}

}  // namespace

Result<std::vector<Interface>> list_interfaces() {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0)
    return fail(system_code(errno), "the network interfaces cannot be listed: {}",
                system_code(errno).message());
  std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> entries(raw, freeifaddrs);
  UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));

  std::vector<Interface> interfaces;
  for (const ifaddrs* entry = entries.get(); entry != nullptr; entry = entry->ifa_next) {
    Interface* interface = nullptr;
    for (Interface& known : interfaces)
      if (known.name == entry->ifa_name) interface = &known;
    if (interface == nullptr) {
      interface = &interfaces.emplace_back();
      interface->name = entry->ifa_name;
      interface->index = if_nametoindex(entry->ifa_name);
      interface->up = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_RUNNING) != 0;
      interface->loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
      if (socket.valid()) {
        interface->mtu = read_mtu(socket.get(), interface->name);
        interface->speed_mbps = read_speed_mbps(socket.get(), interface->name);
      }
    }
    if (entry->ifa_addr != nullptr &&
        (entry->ifa_addr->sa_family == AF_INET || entry->ifa_addr->sa_family == AF_INET6))
      add_address(*interface, *entry);
  }
  add_rdma("/sys", interfaces);
  return interfaces;
}

void add_rdma(const std::string& sysfs, std::vector<Interface>& interfaces) {
  const std::vector<RdmaPort> ports = read_rdma_ports(sysfs);
  if (ports.empty()) return;
  std::map<std::string, RdmaLimits> limits;
  for (Interface& interface : interfaces) {
    std::vector<std::string> addresses;
    for (const InterfaceAddress& one : interface.addresses) addresses.push_back(one.address);
    const std::vector<std::string> lower = lower_interfaces(sysfs, interface.name);
    const RdmaPort* port = find_rdma_port(ports, interface.name, addresses, lower);
    if (port == nullptr) continue;
    if (!limits.contains(port->device))
      limits[port->device] = read_rdma_limits(port->device).value_or(RdmaLimits());
    const RdmaLimits& known = limits[port->device];
    interface.rdma = InterfaceRdma{.device = port->device,
                                   .port = port->number,
                                   .link_layer = port->link_layer,
                                   .link_up = port->link_up(),
                                   .link_state = port->state,
                                   .regions_max = known.regions_max,
                                   .region_bytes_max = known.region_bytes_max,
                                   .memory_windows = known.memory_windows};
    for (InterfaceAddress& one : interface.addresses)
      one.rdma_type = rdma_address_type(*port, interface.name, one.address, lower);
  }
}

}  // namespace vjbod::net
