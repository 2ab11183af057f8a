// SPDX-License-Identifier: Apache-2.0
// Our values as messages of the control channel.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/net/interfaces.h"
#include "target/control/control_parts.h"
#include "target/iscsi/target_server.h"
#include "vjbod/v1/target.pb.h"

namespace vjbod::target {

// How many sessions each target has.
using SessionCounts = std::map<std::string, uint32_t>;
SessionCounts count_sessions(const std::vector<SessionInfo>& sessions);

void fill(const LunStatus& lun, const SessionCounts& sessions, v1::Lun& message);
// `with_path`: only on the box itself.
void fill(const PoolStatus& pool, const TargetState& state, bool with_path, v1::Pool& message);
void fill(const ReachablePortal& portal, v1::Portal& message);
void fill(const net::Interface& interface, v1::Interface& message);
void fill(const ForeignInitiator& initiator, const TargetState& state, v1::Initiator& message);
void fill(const PairedHost& host, const TargetState& state, bool watching,
          v1::TargetPeerInfo& message);
void fill(const SessionInfo& session, const TargetState& state, TimePoint now,
          v1::TargetSession& message);

}  // namespace vjbod::target
