// SPDX-License-Identifier: Apache-2.0
#include "initiator/disk/disk_status.h"

namespace vjbod::initiator {

const char* name_of(DiskState state) {
  switch (state) {
    case DiskState::connecting: return "connecting";
    case DiskState::connected: return "connected";
    case DiskState::reconnecting: return "reconnecting";
    case DiskState::disconnected: return "disconnected";
    case DiskState::detaching: return "detaching";
    case DiskState::failed: return "failed";
    case DiskState::stale: return "stale";
    case DiskState::taken_over: return "taken-over";
    case DiskState::recovering: return "recovering";
  }
  return "unknown";
}

}  // namespace vjbod::initiator
