// SPDX-License-Identifier: Apache-2.0
// The whole pair in one thread and virtual time: the real target server, sessions and device
// server; the real disk, request table, supervisor and initiator session; between them the
// in-memory mover. Everything random comes from the seed.
#pragma once

#include <memory>
#include <string>

#include "common/runtime/manual_reactor.h"
#include "common/transport/memory/memory_network.h"
#include "initiator/disk/disk.h"
#include "target/iscsi/target_server.h"
#include "tests/sim/sim_backstore.h"

namespace vjbod::sim {

inline constexpr char target_name[] = "iqn.2026-11.io.vjbod:sim.disk";
inline constexpr char initiator_name[] = "iqn.2026-11.io.vjbod:sim-host";

class World final : private target::ServerEvents, private initiator::DiskObserver {
 public:
  // `rdma`: the two are joined by a fabric that looks like RDMA as well, which the disk prefers.
  World(uint64_t seed, uint64_t size_bytes, bool rdma);
  ~World();  // takes everything down in order; aborts when that does not end

  ManualReactor& reactor() { return reactor_; }
  transport::MemoryNetwork& network() { return network_; }
  transport::MemoryNetwork& rdma() { return rdma_; }
  SimBackstore& backstore() { return *backstore_; }
  initiator::Disk& disk() { return *disk_; }
  Random& random() { return random_; }
  // The link of the newest connection over what the disk uses now, or null.
  std::shared_ptr<transport::MemoryLink> newest_link();
  uint64_t sessions_opened() const { return sessions_opened_; }
  uint64_t sessions_over_rdma() const { return sessions_over_rdma_; }

 private:
  void on_session_opened(const target::SessionInfo& session) override {
    ++sessions_opened_;
    if (session.transport == transport::Kind::iser) ++sessions_over_rdma_;
  }
  void on_session_closed(const target::SessionInfo&, const Error&) override {}
  void on_login_failed(const std::string&, const Error&) override {}
  void on_disk_changed() override {}
  void on_identity_learned(const initiator::DiskIdentity&,
                           const initiator::BlockGeometry&) override {}

  ManualReactor reactor_;
  Random random_;
  BufferPool buffers_{size_t{64} << 20};
  transport::MemoryNetwork network_{reactor_}, rdma_{reactor_};
  std::shared_ptr<SimBackstore> backstore_;
  std::unique_ptr<target::TargetServer> server_;
  std::unique_ptr<transport::Listener> listener_, rdma_listener_;
  std::unique_ptr<transport::Connector> connector_, rdma_connector_;
  initiator::Connectors connectors_;
  std::unique_ptr<initiator::Disk> disk_;
  uint64_t sessions_opened_ = 0, sessions_over_rdma_ = 0;
};

}  // namespace vjbod::sim
