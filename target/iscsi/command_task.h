// SPDX-License-Identifier: Apache-2.0
// One SCSI Command of a session from its arrival to its response: the slot that joins the tag on
// the wire, the mover's handle, the memory, and the SCSI task. A session has a fixed number of them
// and allocates nothing per command.
#pragma once

#include <cstdint>

#include "common/base/intrusive_list.h"
#include "common/runtime/buffer_pool.h"
#include "common/transport/data_mover.h"
#include "target/scsi/task.h"

namespace vjbod::target {

struct MovedTag {};

class CommandTask final : public scsi::Task, public ListNode<MovedTag> {
 public:
  enum class State : uint8_t {
    free,
    running,    // the nexus has it
    completed,  // the response is queued; its last data is still on its way out
  };

  State state = State::free;
  bool transferring = false;  // the mover has the buffer
  bool immediate = false;
  uint16_t slot = 0;
  uint32_t itt = 0;
  SerialNumber cmd_sn;
  transport::TaskHandle handle = transport::no_task;
  uint32_t immediate_bytes = 0;  // at the start of the buffer
  Buffer memory;
};

}  // namespace vjbod::target
