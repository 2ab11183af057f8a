// SPDX-License-Identifier: Apache-2.0
// Makes iSER connections from a chosen source address: finds the device and the route, checks that
// it is the chosen interface's, connects; each step within its own deadline. Why it did not work
// out is one of RdmaErrc.
#pragma once

#include <memory>

#include "common/transport/connector.h"
#include "common/transport/iser/iser_data_mover.h"
#include "common/transport/iser/iser_place.h"

namespace vjbod::transport {

class IserConnector final : public Connector {
 public:
  static constexpr Duration address_time_max = std::chrono::seconds(1);
  static constexpr Duration route_time_max = std::chrono::seconds(1);
  static constexpr Duration connect_time_max = std::chrono::seconds(3);

  explicit IserConnector(IserPlace& place, const IserDataMover::Options& options = {})
      : place_(place), options_(options) {}

  std::unique_ptr<ConnectAttempt> connect(const Endpoint& to, Duration timeout, Done done) override;

 private:
  IserPlace& place_;
  const IserDataMover::Options options_;
};

}  // namespace vjbod::transport
