// SPDX-License-Identifier: Apache-2.0
// The ways to connect that this process has, by transport. Not owned.
#pragma once

#include <array>

#include "common/transport/connector.h"

namespace vjbod::initiator {

class Connectors {
 public:
  void set(transport::Kind kind, transport::Connector& connector) {
    by_kind_[static_cast<size_t>(kind)] = &connector;
  }
  // Null: this build or this machine has no such transport.
  transport::Connector* of(transport::Kind kind) const {
    return by_kind_[static_cast<size_t>(kind)];
  }

 private:
  std::array<transport::Connector*, 3> by_kind_{};
};

}  // namespace vjbod::initiator
