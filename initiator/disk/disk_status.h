// SPDX-License-Identifier: Apache-2.0
// What a disk tells the control layer: one snapshot with everything that `vjbod status` shows.
// Plain values, to be copied across threads. Ages instead of points in time: the disk knows no wall
// clock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

#include "common/runtime/clock.h"
#include "common/transport/data_mover.h"
#include "initiator/disk/block_device.h"
#include "initiator/disk/disk_identity.h"

namespace vjbod::initiator {

enum class DiskState : uint8_t {
  connecting,  // for the first time since it was started or connected by hand
  connected,
  reconnecting,
  disconnected,  // by hand
  detaching,
  failed,      // needs a person: authentication, or writes that the target has lost
  stale,       // another LUN stands behind the name
  taken_over,  // another host has the LUN now
  recovering,  // as connecting, for a disk taken over from a lost host
};
const char* name_of(DiskState state);  // "connecting", "taken-over": the tokens of CLI and gRPC

enum class OnLoss : uint8_t {
  queue,  // I/O waits for the connection, at the most for the I/O timeout
  fail,   // EIO at once: somebody above (multipath) knows another way
};

inline constexpr size_t block_operation_count = 6;

// Since the disk was made. Latencies are sums over the finished operations: divide for the average.
struct OperationCounters {
  uint64_t operations = 0;  // finished, with and without error
  uint64_t bytes = 0;       // of those without error
  uint64_t errors = 0;
  Duration queued{};   // from submit to the (last) issue
  Duration service{};  // from the (last) issue to the answer of the target
  Duration longest{};  // of one whole operation
};

struct DiskCounters {
  std::array<OperationCounters, block_operation_count> by_operation;  // index: BlockOperation
  uint64_t commands = 0;                                              // issued to the target
  uint64_t replays = 0;  // of those, again after a reconnect
  uint64_t retries = 0;  // of those, again after BUSY, a unit attention and the like

  OperationCounters& of(BlockOperation operation) {
    return by_operation[static_cast<size_t>(operation)];
  }
  const OperationCounters& of(BlockOperation operation) const {
    return by_operation[static_cast<size_t>(operation)];
  }
};

struct DiskError {
  std::error_code code;
  std::string text;  // a sentence
  Duration age{};
};

struct DiskStatus {
  TimePoint taken_at{};
  DiskState state = DiskState::disconnected;
  Duration state_age{};
  std::optional<transport::Kind> connection;  // while connected
  std::string portal;                         // where it is connected, or where it tries
  std::string local_address;                  // our end, while connected
  std::string target_name;
  std::string session_parameters;  // what the login agreed on, for people
  std::string isid;                // twelve hexadecimal digits
  uint16_t lun = 0;
  uint32_t attempt = 0;  // tries since the connection was lost
  std::optional<Duration> next_attempt_in;
  uint64_t queued_ios = 0;           // waiting for a connection or for the target's window
  uint64_t active_ios = 0;           // at the target
  std::optional<Duration> lost_for;  // since when there is no connection
  Duration io_timeout{};             // zero: none
  OnLoss on_loss = OnLoss::queue;
  uint64_t reconnects = 0;
  uint64_t generation = 0;  // sessions made so far
  std::optional<DiskError> last_error;
  // Why RDMA did not work out when it was tried last, with a code of RdmaErrc; nothing once it did.
  std::optional<DiskError> rdma_failure;
  std::optional<Duration> rdma_tried_in;  // it failed repeatedly, and is left out for so long
  bool geometry_known = false;
  BlockGeometry geometry;
  std::optional<DiskIdentity> identity;
  std::string vendor, product, revision;  // INQUIRY, printable
  bool unflushed_writes = false;          // acknowledged, and not yet covered by a flush
  DiskCounters counters;
  std::string transitions;  // the last state changes, for people
};

}  // namespace vjbod::initiator
