// SPDX-License-Identifier: Apache-2.0
#include "common/net/echo.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include <arpa/inet.h>
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vjbod::net {

namespace {

constexpr size_t packet_bytes_max = 65536;

// RFC 792: type, code, checksum, identifier, sequence; ICMPv6 (RFC 4443) has the same shape.
struct EchoHeader {
  uint8_t type = 0, code = 0;
  uint16_t checksum = 0, identifier = 0, sequence = 0;
};
static_assert(sizeof(EchoHeader) == 8);

uint16_t our_identifier() {
  return htons(static_cast<uint16_t>(getpid()));
}

// RFC 1071.
uint16_t internet_checksum(const std::vector<std::byte>& packet) {
  uint32_t sum = 0;
  for (size_t i = 0; i < packet.size(); i += 2) {
    const auto high = std::to_integer<uint32_t>(packet[i]);
    const auto low = i + 1 < packet.size() ? std::to_integer<uint32_t>(packet[i + 1]) : 0u;
    sum += high << 8 | low;
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return htons(static_cast<uint16_t>(~sum & 0xffff));
}

bool to_address(const std::string& text, sockaddr_storage& address, socklen_t& size) {
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    size = sizeof v4;
    return true;
  }
  if (inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    size = sizeof v6;
    return true;
  }
  return false;
}

}  // namespace

Result<Echo> Echo::open(const std::string& to, const std::string& source,
                        const std::string& interface) {
  sockaddr_storage address{}, from{};
  socklen_t size = 0, from_size = 0;
  if (!to_address(to, address, size))
    return fail(system_code(EINVAL), "\"{}\" is no numeric address", to);
  const bool ipv6 = address.ss_family == AF_INET6;
  const int protocol = ipv6 ? static_cast<int>(IPPROTO_ICMPV6) : static_cast<int>(IPPROTO_ICMP);
  const int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
  // icmp(7): without privileges where the administrator allows it, raw with them.
  bool raw = false;
  UniqueFd socket(::socket(address.ss_family, SOCK_DGRAM | flags, protocol));
  if (!socket.valid()) {
    raw = true;
    socket = UniqueFd(::socket(address.ss_family, SOCK_RAW | flags, protocol));
  }
  const auto failed = [] {
    const int error = errno;
    return fail(system_code(error), "this process may not ping: {}", system_code(error).message());
  };
  if (!socket.valid()) return failed();
  if (!interface.empty() && setsockopt(socket.get(), SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(),
                                       static_cast<socklen_t>(interface.size())) != 0)
    return failed();
  // Never cut into fragments, whatever the kernel has learned of the way before.
  const int probe4 = IP_PMTUDISC_PROBE, probe6 = IPV6_PMTUDISC_PROBE;
  if (ipv6 ? setsockopt(socket.get(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe6, sizeof probe6) != 0
           : setsockopt(socket.get(), IPPROTO_IP, IP_MTU_DISCOVER, &probe4, sizeof probe4) != 0)
    return failed();
  if (!source.empty() &&
      (!to_address(source, from, from_size) ||
       bind(socket.get(), reinterpret_cast<const sockaddr*>(&from), from_size) != 0))
    return failed();
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    return failed();
  return Echo(std::move(socket), ipv6, raw);
}

Status Echo::send(uint16_t sequence, uint32_t packet_bytes) {
  if (packet_bytes < headers_bytes() || packet_bytes > packet_bytes_max)
    return fail(system_code(EMSGSIZE), "a packet of {} bytes is no echo request", packet_bytes);
  EchoHeader header;
  header.type = ipv6_ ? uint8_t{ICMPV6_ECHO_REQUEST} : uint8_t{ICMP_ECHO};
  header.identifier = our_identifier();
  header.sequence = htons(sequence);
  std::vector<std::byte> packet(sizeof header + packet_bytes - headers_bytes(), std::byte{0xa5});
  std::memcpy(packet.data(), &header, sizeof header);
  // The kernel fills it in where it knows the protocol.
  header.checksum = internet_checksum(packet);
  std::memcpy(packet.data(), &header, sizeof header);
  if (::send(socket_.get(), packet.data(), packet.size(), 0) < 0) {
    const int error = errno;
    return fail(system_code(error), "a packet of {} bytes cannot be sent: {}", packet_bytes,
                system_code(error).message());
  }
  return {};
}

std::optional<Echo::Answer> Echo::read() {
  std::vector<std::byte> packet(packet_bytes_max);
  for (;;) {
    const ssize_t got = ::recv(socket_.get(), packet.data(), packet.size(), 0);
    if (got < 0 &&
        (errno == EINTR || errno == ECONNREFUSED || errno == EHOSTUNREACH || errno == EMSGSIZE))
      continue;  // an error that was waiting, told once
    if (got < 0) return std::nullopt;
    auto bytes = static_cast<size_t>(got);
    size_t skip = 0;
    if (raw_ && !ipv6_ && bytes > 0)
      skip = (std::to_integer<size_t>(packet[0]) & 0xf) * 4;  // the IP header comes with it
    if (bytes < skip + sizeof(EchoHeader)) continue;
    EchoHeader header;
    std::memcpy(&header, packet.data() + skip, sizeof header);
    const uint8_t reply = ipv6_ ? uint8_t{ICMPV6_ECHO_REPLY} : uint8_t{ICMP_ECHOREPLY};
    if (header.type != reply || (raw_ && header.identifier != our_identifier())) continue;
    bytes -= skip + sizeof header;
    return Answer{ntohs(header.sequence), static_cast<uint32_t>(bytes) + headers_bytes()};
  }
}

}  // namespace vjbod::net
