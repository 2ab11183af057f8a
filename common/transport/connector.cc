// SPDX-License-Identifier: Apache-2.0
#include "common/transport/connector.h"

namespace vjbod::transport {

std::string text_of(const Endpoint& endpoint) {
  const bool ipv6 = endpoint.address.find(':') != std::string::npos;
  return ipv6 ? fmt::format("[{}]:{}", endpoint.address, endpoint.port)
              : fmt::format("{}:{}", endpoint.address, endpoint.port);
}

}  // namespace vjbod::transport
