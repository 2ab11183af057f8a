// SPDX-License-Identifier: Apache-2.0
// Echo requests (ping) of a chosen size that must not be cut into fragments: whether the way to an
// address and back carries packets of that size. The answer holds what the request held, so both
// directions are tried. The owner waits for fd() to be readable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace vjbod::net {

class Echo {
 public:
  // `source` and `interface`: of this box; empty: any. An error when this process may not ping.
  static Result<Echo> open(const std::string& to, const std::string& source,
                           const std::string& interface);

  int fd() const { return socket_.get(); }
  // `packet_bytes`: with the headers of IP and ICMP, as an MTU counts.
  Status send(uint16_t sequence, uint32_t packet_bytes);
  struct Answer {
    uint16_t sequence = 0;
    uint32_t packet_bytes = 0;
  };
  // The next answer that is here; what is none of ours is left out.
  std::optional<Answer> read();

 private:
  Echo(UniqueFd socket, bool ipv6, bool raw) : socket_(std::move(socket)), ipv6_(ipv6), raw_(raw) {}
  uint32_t headers_bytes() const { return (ipv6_ ? 40 : 20) + 8; }

  UniqueFd socket_;
  bool ipv6_, raw_;
};

}  // namespace vjbod::net
