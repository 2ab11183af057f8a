// SPDX-License-Identifier: Apache-2.0
// What the two services work on: all of it on the control reactor, owned by the daemon.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/rpc/event_log.h"
#include "common/rpc/identity.h"
#include "target/control/access_manager.h"
#include "target/control/config.h"
#include "target/control/host_watchers.h"
#include "target/control/lun_manager.h"
#include "target/control/pairing.h"
#include "target/control/pools.h"
#include "target/control/portals.h"
#include "target/control/serving.h"
#include "target/control/state_store.h"

namespace vjbod::target {

struct ControlParts {
  const TargetConfig& config;
  const rpc::Identity& identity;
  Reactor& reactor;
  Serving& serving;
  StateStore& store;
  Pools& pools;
  LunManager& luns;
  AccessManager& access;
  PairingDesk& pairing;
  rpc::EventLog& events;
  HostWatchers& watchers;
  WallTime started_at{};
  // As they are now: addresses come and go.
  std::function<std::vector<ReachablePortal>()> portals;            // iSCSI
  std::function<std::vector<ReachablePortal>()> control_addresses;  // of the control channel

  void event(rpc::Severity severity, std::string_view kind, std::string_view object,
             std::string text);
};

}  // namespace vjbod::target
