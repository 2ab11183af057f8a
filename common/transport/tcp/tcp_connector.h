// SPDX-License-Identifier: Apache-2.0
// Connects over TCP, from a chosen source address and interface, within a deadline. On its
// reactor's thread; outlives its attempts.
#pragma once

#include <memory>

#include "common/runtime/asio_reactor.h"
#include "common/transport/connector.h"

namespace vjbod::transport {

class TcpConnector final : public Connector {
 public:
  explicit TcpConnector(AsioReactor& reactor) : reactor_(reactor) {}

  // Errors are errno codes with a sentence, or iscsi::Errc::timed_out.
  std::unique_ptr<ConnectAttempt> connect(const Endpoint& to, Duration timeout, Done done) override;

 private:
  AsioReactor& reactor_;
};

}  // namespace vjbod::transport
