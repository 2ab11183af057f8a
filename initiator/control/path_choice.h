// SPDX-License-Identifier: Apache-2.0
// Which way a disk's data goes: the ranked interface pairs and the peer's portals made into path
// candidates. Pure.
#pragma once

#include <optional>
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
  std::optional<NoIser> no_iser;  // why there is none by iSER, where one was wanted
};

// What both boxes report, for the ranking. `control_address`: of the peer, as it is reached.
RankingInput ranking_input(const std::vector<net::Interface>& ours,
                           const v1::DescribeResponse& peer, const std::string& control_address,
                           const InterfaceWishes& wishes);

// The data goes over the best usable pair; other usable pairs stand in for it when it cannot be
// reached, but the one that carries the control channel only where there is nothing else. Unless
// iSCSI is wanted, iSER goes first over each pair that has it; unless iSER is wanted, iSCSI comes
// after it. Without a common subnet (a routed network, one box playing both) the portal at the
// control address is taken, unless interfaces were asked for: then it is an error.
Result<PathChoice> choose_paths(const std::vector<net::Interface>& ours,
                                const v1::DescribeResponse& peer,
                                const std::string& control_address, const DiskChoices& choices);

// The way to a target that is none of ours: the portal that was given, by the interface that is
// wanted. `source_address`: by which the kernel would go there; empty when it knows no way.
Result<PathChoice> choose_foreign_paths(const std::vector<net::Interface>& ours,
                                        const std::string& address, uint16_t port,
                                        const std::string& source_address,
                                        const DiskChoices& choices);

// What keeps iSER from being used with this address of this box, as far as can be known here.
std::optional<NoIser> rdma_obstacle_here(const std::vector<net::Interface>& ours,
                                         const std::string& address);

}  // namespace vjbod::initiator
