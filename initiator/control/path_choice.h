// SPDX-License-Identifier: Apache-2.0
// Which way a disk's data goes: the interface pairs of two boxes, their ranking, and the peer's
// portals made into path candidates. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/net/interfaces.h"
#include "initiator/control/host_state.h"
#include "initiator/control/interface_ranking.h"
#include "initiator/session/transport_plan.h"
#include "vjbod/v1/target.pb.h"

namespace vjbod::initiator {

struct PathChoice {
  std::vector<PathCandidate> candidates;         // best first
  std::string host_interface, remote_interface;  // of the best; empty when none was chosen
  std::string explanation;
};

// Both boxes' interfaces as the ranking sees them. `control_address`: of the peer, as it is
// reached.
std::vector<RankedInterface> host_interfaces(const std::vector<net::Interface>& interfaces,
                                             const std::string& control_address);
std::vector<RankedInterface> remote_interfaces(const v1::DescribeResponse& peer,
                                               const std::string& control_address);

// The data goes over the best usable pair; other usable pairs stand in for it when it cannot be
// reached, but the one that carries the control channel only where there is nothing else. Without a
// common subnet (a routed network, one box playing both) the portal at the control address is
// taken, unless interfaces were asked for: then it is an error.
Result<PathChoice> choose_paths(const std::vector<net::Interface>& ours,
                                const v1::DescribeResponse& peer,
                                const std::string& control_address, const DiskChoices& choices);

}  // namespace vjbod::initiator
