// SPDX-License-Identifier: Apache-2.0
// What a disk of a peer would meet, found out before one is made: the control channel, versions,
// clocks, the way the data would go, its MTU, RDMA, and space. Main reactor; the data-path probe
// runs on a shard.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "initiator/control/host_shard.h"
#include "initiator/control/peer_manager.h"
#include "vjbod/v1/host.pb.h"

namespace vjbod::initiator {

// An error only when there is no such peer; everything else is a check that failed.
void run_preflight(Reactor& reactor, PeerManager& peers, HostShard& shard, const std::string& peer,
                   std::function<void(Result<v1::PreflightResponse>)> done);

// The pairs of interfaces to a peer, ranked.
void list_interface_pairs(PeerManager& peers, const std::string& peer,
                          std::function<void(Result<v1::ListInterfacePairsResponse>)> done);

}  // namespace vjbod::initiator
