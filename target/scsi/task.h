// SPDX-License-Identifier: Apache-2.0
// Where the transport ends and SCSI begins. The transport side hands a Task in; the logical unit
// drives its data phase and hands an Outcome out, once. No transport type here, and that side never
// looks into the CDB.
//
// Memory: the transport side lends `buffer` for the whole life of the task (at least
// min(expected_data_bytes, task_buffer_bytes_max), page-aligned). A logical unit moves a larger
// transfer through it in pieces. Immediate data of a write already stands at the buffer's start
// when the task comes in: get_data() for these bytes into their own place completes without asking
// the peer.
#pragma once

#include <array>
#include <cstdint>

#include "common/base/bytes.h"
#include "common/scsi/lun.h"
#include "common/scsi/status.h"

namespace vjbod::scsi {

inline constexpr size_t task_buffer_bytes_max = size_t{1} << 20;
inline constexpr size_t sense_bytes_max = 252;  // SPC-4 4.5.1

enum class DataDirection : uint8_t { none, read, write };

struct Outcome {
  Status status = Status::good;
  std::array<std::byte, sense_bytes_max> sense{};
  uint8_t sense_bytes = 0;
  // How many bytes the command would have moved, had the initiator expected any number: the
  // transport side works out overflow and underflow from it.
  uint64_t actual_data_bytes = 0;
};

class Task;

// The transport side of a task. Each call is answered by the matching call on the task's
// LogicalUnit side.
class TaskPort {
 public:
  // Sends task.buffer.first(length) as the task's data at `offset`. Answered by
  // TaskExecution::on_data_moved. Never beyond expected_data_bytes: the caller cuts.
  virtual void put_data(Task& task, uint64_t offset, size_t length) = 0;
  // Fills task.buffer.first(length) from the task's data at `offset`. Answered likewise.
  virtual void get_data(Task& task, uint64_t offset, size_t length) = 0;
  // Gives up the put_data or get_data under way, for an abort or a reset: on_data_moved still
  // comes, soon and without waiting for the peer. Called at most once per transfer.
  virtual void cancel_data(Task& task) = 0;
  // put_data of a read's last piece followed by complete, so that data and status leave together.
  // No on_data_moved comes for it; the task may be gone when this returns.
  virtual void put_data_and_complete(Task& task, uint64_t offset, size_t length,
                                     const Outcome& outcome) = 0;
  // The end. Exactly once per task; the task may be gone when this returns.
  virtual void complete(Task& task, const Outcome& outcome) = 0;

 protected:
  ~TaskPort() = default;
};

// What the logical unit keeps for a task while it runs; a hook for the answers of the transport
// side.
class TaskExecution {
 public:
  virtual void on_data_moved(Task& task) = 0;

 protected:
  ~TaskExecution() = default;
};

class Task {
 public:
  TaskPort* port = nullptr;
  TaskExecution* execution =
      nullptr;  // set by the logical unit for as long as it wants on_data_moved
  LunAddress lun{};
  std::array<std::byte, 16> cdb{};
  TaskAttribute attribute = TaskAttribute::simple;
  DataDirection direction = DataDirection::none;
  uint64_t expected_data_bytes = 0;
  Bytes buffer;
  // Set by an abort or a reset. The logical unit stops at the next step and completes with any
  // outcome; the transport side sends no response for it.
  bool aborted = false;
};

}  // namespace vjbod::scsi
