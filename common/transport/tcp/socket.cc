// SPDX-License-Identifier: Apache-2.0
#include "common/transport/tcp/socket.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "common/transport/connector.h"

namespace vjbod::transport {

namespace {

template <typename Get>
SocketAddress address_from(int fd, Get&& get) {
  SocketAddress address;
  address.length = sizeof address.storage;
  if (get(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) return {};
  return address;
}

// A dual-stack socket shows an IPv4 peer as ::ffff:a.b.c.d.
SocketAddress without_mapping(const SocketAddress& address) {
  if (address.family() != AF_INET6) return address;
  sockaddr_in6 from{};
  std::memcpy(&from, &address.storage, sizeof from);
  if (!IN6_IS_ADDR_V4MAPPED(&from.sin6_addr)) return address;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = from.sin6_port;
  std::memcpy(&to.sin_addr, &from.sin6_addr.s6_addr[12], sizeof to.sin_addr);
  SocketAddress result;
  std::memcpy(&result.storage, &to, sizeof to);
  result.length = sizeof to;
  return result;
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

Result<SocketAddress> parse_address(const std::string& address, uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    return fail(std::make_error_code(std::errc::invalid_argument),
                "\"{}\" is not a numeric IPv4 or IPv6 address ({}).", address, gai_strerror(error));
  }
  SocketAddress result;
  std::memcpy(&result.storage, found->ai_addr, found->ai_addrlen);
  result.length = found->ai_addrlen;
  freeaddrinfo(found);
  return result;
}

std::string address_text(const SocketAddress& address) {
  const SocketAddress shown = without_mapping(address);
  if (shown.family() != AF_INET && shown.family() != AF_INET6) return "local";
  std::array<char, NI_MAXHOST> host{};
  if (getnameinfo(shown.get(), shown.length, host.data(), host.size(), nullptr, 0,
                  NI_NUMERICHOST) != 0)
    return "unknown";
  return host.data();
}

std::string endpoint_text(const SocketAddress& address) {
  uint16_t port = 0;
  if (address.family() == AF_INET || address.family() == AF_INET6) {
    // The port stands at the same place in both.
    std::memcpy(&port, reinterpret_cast<const char*>(&address.storage) + sizeof(sa_family_t),
                sizeof port);
  } else {
    return "local";
  }
  Endpoint endpoint;
  endpoint.address = address_text(address);
  endpoint.port = ntohs(port);
  return text_of(endpoint);
}

SocketAddress peer_address_of(int fd) {
  return address_from(fd, getpeername);
}

std::string peer_name_of(int fd) {
  return endpoint_text(peer_address_of(fd));
}

std::string local_name_of(int fd) {
  return endpoint_text(address_from(fd, getsockname));
}

void set_data_connection_options(int fd) {
  const int on = 1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto timeout = static_cast<unsigned>(tcp_user_timeout.count());
  (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
}

Status bind_to_interface(int fd, const std::string& interface_name) {
  if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface_name.c_str(),
                 static_cast<socklen_t>(interface_name.size())) == 0)
    return {};
  const int error = errno;
  if (error == EPERM) {
    return fail(system_code(error),
                "Binding to interface {} needs the capability CAP_NET_RAW, which this process does "
                "not have. Run the daemon with it, or choose a source address only.",
                interface_name);
  }
  if (error == ENODEV)
    return fail(system_code(error), "There is no interface named \"{}\".", interface_name);
  return fail(system_code(error), "Cannot bind to interface {}: {}.", interface_name,
              std::strerror(error));
}

}  // namespace vjbod::transport
