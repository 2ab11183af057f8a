// SPDX-License-Identifier: Apache-2.0
#include "common/net/rdma_ports.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>
#include <tuple>

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>

namespace vjbod::net {

namespace {

constexpr size_t stacked_interfaces_max = 32;  // more is a loop

std::vector<std::string> folder_entries(const std::string& path) {
  std::vector<std::string> names;
  std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (folder == nullptr) return names;
  while (const dirent* entry = readdir(folder.get()))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  std::sort(names.begin(), names.end());
  return names;
}

// The first line; empty when it cannot be read, as the entries of a table that are not used.
std::string line_of(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

// "4: ACTIVE" without its number.
std::string without_number(const std::string& text) {
  const size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

// Empty for an unused entry, or what is none.
std::string address_of_gid(const std::string& gid) {
  in6_addr address{};
  if (inet_pton(AF_INET6, gid.c_str(), &address) != 1 || IN6_IS_ADDR_UNSPECIFIED(&address))
    return {};
  char text[INET6_ADDRSTRLEN] = {};
  if (IN6_IS_ADDR_V4MAPPED(&address))
    inet_ntop(AF_INET, &address.s6_addr[12], text, sizeof text);
  else
    inet_ntop(AF_INET6, &address, text, sizeof text);
  return text;
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
    names.push_back(name);
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The network interfaces of the same hardware function. One function with several ports numbers its
// interfaces alike.
void add_sibling_interfaces(const std::string& sysfs, bool several_ports, RdmaPort& port) {
  const std::string device = sysfs + "/class/infiniband/" + port.device;
  add_once(port.interfaces, line_of(device + "/parent"));  // of Soft-RoCE
  for (const std::string& interface : folder_entries(device + "/device/net")) {
    const std::string number = line_of(sysfs + "/class/net/" + interface + "/dev_port");
    if (!several_ports || number.empty() || number == std::to_string(port.number - 1))
      add_once(port.interfaces, interface);
  }
}

RdmaPort read_port(const std::string& sysfs, const std::string& device, uint32_t number,
                   bool several_ports) {
  const std::string root = sysfs + "/class/infiniband/" + device;
  const std::string folder = root + "/ports/" + std::to_string(number);
  RdmaPort port;
  port.device = device;
  port.number = number;
  port.state = without_number(line_of(folder + "/state"));
  port.link_layer = line_of(folder + "/link_layer");
  port.fabric = without_number(line_of(root + "/node_type")) == "RNIC" ? RdmaFabric::iwarp
                : port.link_layer == "InfiniBand"                      ? RdmaFabric::infiniband
                                                                       : RdmaFabric::roce;
  add_sibling_interfaces(sysfs, several_ports, port);
  for (const std::string& index : folder_entries(folder + "/gids")) {
    RdmaGid gid;
    gid.address = address_of_gid(line_of(folder + "/gids/" + index));
    if (gid.address.empty()) continue;
    gid.interface = line_of(folder + "/gid_attrs/ndevs/" + index);
    gid.roce_v2 = line_of(folder + "/gid_attrs/types/" + index) == "RoCE v2";
    port.gids.push_back(std::move(gid));
  }
  return port;
}

size_t addresses_known(const RdmaPort& port, const std::string& interface,
                       const std::vector<std::string>& addresses,
                       const std::vector<std::string>& lower) {
  return static_cast<size_t>(
      std::count_if(addresses.begin(), addresses.end(), [&](const std::string& address) {
        return !rdma_address_type(port, interface, address, lower).empty();
      }));
}

bool belongs_to(const RdmaPort& port, const std::string& interface,
                const std::vector<std::string>& lower) {
  return contains(port.interfaces, interface) ||
         std::any_of(lower.begin(), lower.end(),
                     [&](const std::string& name) { return contains(port.interfaces, name); });
}

bool serves(const RdmaPort& port, const std::string& interface,
            const std::vector<std::string>& lower) {
  if (belongs_to(port, interface, lower)) return true;
  return std::any_of(port.gids.begin(), port.gids.end(), [&](const RdmaGid& gid) {
    return gid.interface == interface || (!gid.interface.empty() && contains(lower, gid.interface));
  });
}

}  // namespace

const char* name_of(RdmaFabric fabric) {
  switch (fabric) {
    case RdmaFabric::infiniband: return "InfiniBand";
    case RdmaFabric::roce: return "RoCE";
    case RdmaFabric::iwarp: return "iWARP";
  }
  return "unknown";
}

std::vector<RdmaPort> read_rdma_ports(const std::string& sysfs) {
  std::vector<RdmaPort> ports;
  const std::string root = sysfs + "/class/infiniband";
  for (const std::string& device : folder_entries(root)) {
    const std::vector<std::string> numbers = folder_entries(root + "/" + device + "/ports");
    for (const std::string& text : numbers) {
      uint32_t number = 0;
      const char* end = text.data() + text.size();
      const auto [rest, error] = std::from_chars(text.data(), end, number);
      if (error != std::errc() || rest != end) continue;
      ports.push_back(read_port(sysfs, device, number, numbers.size() > 1));
    }
  }
  return ports;
}

std::vector<std::string> lower_interfaces(const std::string& sysfs, const std::string& interface) {
  static constexpr char prefix[] = "lower_";
  std::vector<std::string> found{interface};
  for (size_t i = 0; i < found.size() && found.size() < stacked_interfaces_max; ++i)
    for (const std::string& entry : folder_entries(sysfs + "/class/net/" + found[i]))
      if (entry.starts_with(prefix)) add_once(found, entry.substr(std::strlen(prefix)));
  found.erase(found.begin());
  return found;
}

const RdmaPort* find_rdma_port(const std::vector<RdmaPort>& ports, const std::string& interface,
                               const std::vector<std::string>& addresses,
                               const std::vector<std::string>& lower) {
  const RdmaPort* best = nullptr;
  const auto worth = [&](const RdmaPort& port) {
    return std::tuple(addresses_known(port, interface, addresses, lower), port.link_up());
  };
  for (const RdmaPort& port : ports)
    if (serves(port, interface, lower) && (best == nullptr || worth(port) > worth(*best)))
      best = &port;
  return best;
}

std::string rdma_address_type(const RdmaPort& port, const std::string& interface,
                              const std::string& address, const std::vector<std::string>& lower) {
  if (port.fabric != RdmaFabric::roce)
    // The connection manager resolves the address by its interface; the table holds other things.
    return belongs_to(port, interface, lower) ? name_of(port.fabric) : "";
  std::string type;
  for (const RdmaGid& gid : port.gids) {
    if (gid.address != address || gid.interface != interface) continue;
    if (gid.roce_v2) return "RoCE v2";
    type = "RoCE v1";
  }
  return type;
}

}  // namespace vjbod::net
