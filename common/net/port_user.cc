// SPDX-License-Identifier: Apache-2.0
#include "common/net/port_user.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/format.h>

namespace vjbod::net {

namespace {

constexpr std::string_view listening_state = "0A";  // TCP_LISTEN

// proc(5), /proc/net/tcp: "sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout
// inode"
void add_listeners(const char* table, uint16_t port, std::set<std::string>& sockets) {
  const std::string ending = fmt::format(":{:04X}", port);
  std::ifstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::array<std::string, 10> field;
    for (std::string& one : field) fields >> one;
    if (field[1].ends_with(ending) && field[3] == listening_state)
      sockets.insert(fmt::format("socket:[{}]", field[9]));
  }
}

bool has_one_of(const std::filesystem::path& descriptors, const std::set<std::string>& sockets) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(descriptors, ignored)) {
    std::error_code gone;
    if (sockets.contains(std::filesystem::read_symlink(entry.path(), gone).string())) return true;
  }
  return false;
}

}  // namespace

std::string port_user(uint16_t port) {
  std::set<std::string> sockets;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) add_listeners(table, port, sockets);
  std::error_code ignored;
  for (const auto& process : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string number = process.path().filename();
    if (sockets.empty() || number.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!has_one_of(process.path() / "fd", sockets)) continue;
    std::string name;
    std::getline(std::ifstream(process.path() / "comm"), name);
    return fmt::format("{} (process {})", name, number);
  }
  return "another program";
}

}  // namespace vjbod::net
