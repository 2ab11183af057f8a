// SPDX-License-Identifier: Apache-2.0
// SCSI status codes and task attributes (SAM-5 5.3.1, 8.9).
#pragma once

#include <cstdint>

namespace vjbod::scsi {

enum class Status : uint8_t {
  good = 0x00,
  check_condition = 0x02,
  condition_met = 0x04,
  busy = 0x08,
  reservation_conflict = 0x18,
  task_set_full = 0x28,
  aca_active = 0x30,
  task_aborted = 0x40,
};
const char* name_of(Status status);  // "CHECK CONDITION"

enum class TaskAttribute : uint8_t { simple, ordered, head_of_queue, aca };

}  // namespace vjbod::scsi
