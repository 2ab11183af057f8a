// SPDX-License-Identifier: Apache-2.0
#include "common/net/route.h"

#include <cstring>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/base/unique_fd.h"

namespace vjbod::net {

namespace {

constexpr uint16_t any_port = 3260;  // nothing is sent; the kernel only wants one

}  // namespace

std::string source_address_towards(const std::string& address, const std::string& interface) {
  sockaddr_storage to{}, from{};
  auto& to4 = reinterpret_cast<sockaddr_in&>(to);
  auto& to6 = reinterpret_cast<sockaddr_in6&>(to);
  socklen_t size = 0;
  if (inet_pton(AF_INET, address.c_str(), &to4.sin_addr) == 1) {
    to4.sin_family = AF_INET;
    to4.sin_port = htons(any_port);
    size = sizeof to4;
  } else if (inet_pton(AF_INET6, address.c_str(), &to6.sin6_addr) == 1) {
    to6.sin6_family = AF_INET6;
    to6.sin6_port = htons(any_port);
    size = sizeof to6;
  } else {
    return {};
  }
  // A UDP socket that is connected has looked up its route, and nothing more.
  const UniqueFd socket(::socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return {};
  if (!interface.empty() && setsockopt(socket.get(), SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(),
                                       static_cast<socklen_t>(interface.size())) != 0)
    return {};
  socklen_t from_size = sizeof from;
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), size) != 0 ||
      getsockname(socket.get(), reinterpret_cast<sockaddr*>(&from), &from_size) != 0)
    return {};
  char text[INET6_ADDRSTRLEN] = {};
  const void* binary =
      from.ss_family == AF_INET
          ? static_cast<const void*>(&reinterpret_cast<sockaddr_in&>(from).sin_addr)
          : &reinterpret_cast<sockaddr_in6&>(from).sin6_addr;
  return inet_ntop(from.ss_family, binary, text, sizeof text) != nullptr ? text : "";
}

}  // namespace vjbod::net
