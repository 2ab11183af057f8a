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
  World(uint64_t seed, uint64_t size_bytes);
  ~World();  // takes everything down in order; aborts when that does not end

  ManualReactor& reactor() { return reactor_; }
  transport::MemoryNetwork& network() { return network_; }
  SimBackstore& backstore() { return *backstore_; }
  initiator::Disk& disk() { return *disk_; }
  Random& random() { return random_; }
  // The link of the newest connection, or null.
  std::shared_ptr<transport::MemoryLink> newest_link();
  uint64_t sessions_opened() const { return sessions_opened_; }

 private:
  void on_session_opened(const target::SessionInfo&) override { ++sessions_opened_; }
  void on_session_closed(const target::SessionInfo&, const Error&) override {}
  void on_login_failed(const std::string&, const Error&) override {}
  void on_disk_changed() override {}
  void on_identity_learned(const initiator::DiskIdentity&,
                           const initiator::BlockGeometry&) override {}

  ManualReactor reactor_;
  Random random_;
  BufferPool buffers_{size_t{64} << 20};
  transport::MemoryNetwork network_{reactor_};
  std::shared_ptr<SimBackstore> backstore_;
  std::unique_ptr<target::TargetServer> server_;
  std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<transport::Connector> connector_;
  initiator::Connectors connectors_;
  std::unique_ptr<initiator::Disk> disk_;
  uint64_t sessions_opened_ = 0;
};

}  // namespace vjbod::sim
