// SPDX-License-Identifier: Apache-2.0
// A disk as people and scripts see it: its record and its live status made into one message. Pure.
#pragma once

#include <optional>
#include <string>

#include "initiator/control/host_state.h"
#include "initiator/control/interface_ranking.h"
#include "initiator/disk/disk_status.h"
#include "vjbod/v1/host.pb.h"

namespace vjbod::initiator {

struct DiskViewInput {
  const DiskRecord* record = nullptr;
  const DiskStatus* status = nullptr;  // null: not running, because its creation was interrupted
  std::string socket_path;             // empty: not exported
  std::string export_error;            // why it is not exported
  std::string peer_address;
  std::string host_interface, remote_interface;  // of the way chosen
  std::optional<NoIser> no_iser;                 // why there is no way by iSER
  uint32_t fallbacks = 0;
  WallTime last_fallback{};
  WallTime now;  // the wall clock when the status was taken
};

v1::Disk disk_view(const DiskViewInput& input);

// Why a disk is not connected by iSER though it is wanted.
struct FallbackReason {
  std::string code;  // stable token
  std::string text;  // without a full stop
};
FallbackReason fallback_reason(const std::optional<NoIser>& no_iser, const DiskStatus& status);

}  // namespace vjbod::initiator
