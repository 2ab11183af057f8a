// SPDX-License-Identifier: Apache-2.0
// The listening iSCSI portals: accepts, applies the server's limits, and brings each connection to
// the shard that it will live on. An address that this box does not have yet (an interface that
// comes up late) is tried again; a port that is taken is an error. On the home reactor.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/runtime/asio_reactor.h"
#include "common/runtime/timer_queue.h"
#include "common/transport/tcp/tcp_listener.h"
#include "target/control/config.h"
#include "target/control/portals.h"
#include "target/iscsi/target_server.h"

namespace vjbod::target {

class PortalListeners final : public transport::TcpListenerEvents {
 public:
  static constexpr Duration bind_retry = std::chrono::seconds(3);

  // A limit that is reached is logged so often, however many connections it keeps out.
  static constexpr Duration limit_told_interval = std::chrono::minutes(1);

  // `shards`: the server's places, in its order. `opened`: a portal that had to wait is open now.
  // All outlive this object.
  PortalListeners(AsioReactor& home, std::vector<AsioReactor*> shards, TargetServer& server,
                  std::vector<PortalConfig> portals, std::function<void()> opened);

  // The first error that waiting will not mend.
  Status open();
  // Tries those that wait for their address; by itself every bind_retry.
  void retry();
  // Where it listens now, with real ports.
  std::vector<ReachablePortal> listening() const;

  void on_accepted(transport::AcceptedSocket accepted) override;
  void on_accept_trouble(const Error& error) override;

 private:
  Status open_one(const PortalConfig& portal);
  void note_limit(const std::string& address);

  AsioReactor& home_;
  std::vector<AsioReactor*> shards_;
  TargetServer& server_;
  std::vector<PortalConfig> waiting_;  // for their address
  std::function<void()> opened_;
  uint64_t turned_away_ = 0;
  std::optional<TimePoint> limit_told_;
  std::vector<std::unique_ptr<transport::TcpListener>> listeners_;
  Timer retry_timer_;
};

}  // namespace vjbod::target
