// SPDX-License-Identifier: Apache-2.0
// A shard of the host daemon with what its disks need to connect.
#pragma once

#include <memory>
#include <string>

#include "common/runtime/shard.h"
#include "common/transport/tcp/tcp_connector.h"
#include "initiator/session/connectors.h"

namespace vjbod::initiator {

struct HostShard {
  HostShard(const std::string& name, int core, uint64_t seed, size_t buffer_memory_max_bytes)
      : shard(name, core, seed, buffer_memory_max_bytes), tcp(shard.reactor()) {
    connectors.set(transport::Kind::iscsi, tcp);
  }
  Shard shard;
  transport::TcpConnector tcp;
  Connectors connectors;
};

}  // namespace vjbod::initiator
