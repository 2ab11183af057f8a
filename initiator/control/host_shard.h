// SPDX-License-Identifier: Apache-2.0
// A shard of the host daemon with what its disks need to connect.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "common/runtime/shard.h"
#include "common/transport/iser/iser_connector.h"
#include "common/transport/iser/rdma_verbs.h"
#include "common/transport/tcp/tcp_connector.h"
#include "initiator/session/connectors.h"

namespace vjbod::initiator {

struct HostShard {
  // `disposal`: for what may wait in the kernel; it outlives the shard. `devices`: of all shards.
  HostShard(const std::string& name, int core, uint64_t seed, size_t buffer_memory_max_bytes,
            Reactor& disposal, std::shared_ptr<transport::rdma::OpenDevices> devices)
      : shard(name, core, seed, buffer_memory_max_bytes),
        tcp(shard.reactor()),
        fabric(transport::rdma::make_verbs_fabric(shard.reactor(), disposal, std::move(devices))),
        iser_place(shard.reactor(), *fabric),
        iser(iser_place) {
    connectors.set(transport::Kind::iscsi, tcp);
    connectors.set(transport::Kind::iser, iser);
  }
  // What watches descriptors on the shard's reactor goes on its thread.
  ~HostShard() {
    std::promise<void> gone;
    shard.reactor().post([&] {
      fabric.reset();
      gone.set_value();
    });
    gone.get_future().wait();
  }
  Shard shard;
  transport::TcpConnector tcp;
  std::unique_ptr<transport::rdma::Fabric> fabric;
  transport::IserPlace iser_place;
  transport::IserConnector iser;
  Connectors connectors;
};

}  // namespace vjbod::initiator
