// SPDX-License-Identifier: Apache-2.0
// How the layers above come by a mover without knowing what it is made of.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "common/runtime/clock.h"
#include "common/transport/data_mover.h"

namespace vjbod::transport {

struct Endpoint {
  std::string address;  // numeric IPv4 or IPv6, without brackets
  uint16_t port = 3260;
  std::string source_address;  // bind to this local address; empty: any
  std::string interface_name;  // bind to this interface by name; empty: any
};
std::string text_of(const Endpoint& endpoint);  // "10.0.0.2:3260", "[fe80::1]:3260"

// One attempt under way. Destroying it abandons the attempt; its callback does not come any more.
class ConnectAttempt {
 public:
  virtual ~ConnectAttempt() = default;
};

class Connector {
 public:
  using Done = std::function<void(Result<std::unique_ptr<DataMover>>)>;

  virtual ~Connector() = default;
  // `done` comes exactly once, from the reactor's loop, within `timeout`. The mover is on the
  // connector's reactor.
  virtual std::unique_ptr<ConnectAttempt> connect(const Endpoint& to, Duration timeout,
                                                  Done done) = 0;
};

// Accepts until destroyed. `accepted` gets movers that are not started yet.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual std::string local() const = 0;  // with the real port, when 0 was asked for
};

}  // namespace vjbod::transport
