// SPDX-License-Identifier: Apache-2.0
// Sockets as this folder uses them: owned descriptors, numeric addresses, their text, and the
// options of every data connection.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include <sys/socket.h>

#include "common/base/result.h"

namespace vjbod::transport {

// Sent data that nobody acknowledges for so long ends a connection (RFC 5482).
inline constexpr std::chrono::milliseconds tcp_user_timeout = std::chrono::seconds(30);

// Owns a descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();

  int fd() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

// `address` is numeric, IPv4 or IPv6, without brackets; a link-local one may end with "%interface".
Result<SocketAddress> parse_address(const std::string& address, uint16_t port);
// "10.0.0.2" or "fe80::1%eth0": IPv4 in IPv6 is shown as IPv4.
std::string address_text(const SocketAddress& address);
// "10.0.0.2:3260", "[fe80::1%eth0]:3260"; "local" where there are no addresses (a socket pair).
std::string endpoint_text(const SocketAddress& address);
SocketAddress peer_address_of(int fd);
std::string peer_name_of(int fd);
std::string local_name_of(int fd);

// TCP_NODELAY, TCP_USER_TIMEOUT. Failing costs speed or patience, not correctness, and a socket
// pair in a test has neither. Buffer sizes are left to the kernel, which grows them with the speed
// of the connection up to the limits of net.ipv4.tcp_rmem and tcp_wmem; a size set here would be
// fixed, and below what the kernel allows itself.
void set_data_connection_options(int fd);
// SO_BINDTODEVICE.
Status bind_to_interface(int fd, const std::string& interface_name);

}  // namespace vjbod::transport
