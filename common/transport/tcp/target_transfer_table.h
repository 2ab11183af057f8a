// SPDX-License-Identifier: Apache-2.0
// The target's side of transfer bookkeeping: which bytes of which task are still due, what R2Ts
// were sent and what Data-Out they allow (RFC 7143 sections 11.7 and 11.8). Pure; one connection's,
// on its thread; no allocation once grown to its working size.
//
// One transfer per task and one R2T per transfer at a time. Data-Out comes in order (DataPDUInOrder
// and DataSequenceInOrder are Yes), so an R2T's data is one window that is filled from its start.
#pragma once

#include <cstdint>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/iscsi/pdu.h"
#include "common/transport/data_mover.h"
#include "common/transport/tcp/slot_table.h"

namespace vjbod::transport {

class TargetTransferTable {
 public:
  // Tasks at once, whatever the command window is: immediate commands are outside of it.
  static constexpr size_t tasks_max = SlotTable<int>::slots_max;

  enum class Moving : uint8_t { none, put, get };
  struct Task {
    TaskHandle handle = no_task;
    uint32_t itt = 0;
    iscsi::LunField lun{};
    Moving moving = Moving::none;
    bool over = false;            // moving, and on_transfer_done is all that is missing
    uint32_t transfer = 0;        // counts the transfers
    uint32_t sequence_count = 0;  // Data-In PDUs and R2Ts so far: the next DataSN and R2TSN
    // get
    Bytes into;           // what is still to be filled
    uint64_t offset = 0;  // of into, in the task's data
    // the R2T under way
    uint32_t r2t_left = 0;  // bytes still allowed
    uint32_t r2t_next_data_sn = 0;
    // survives the task: what came late is told from what was never asked for
    uint32_t r2t_serial = 0;
  };
  struct R2tWindow {
    uint32_t ttt = 0;
    uint32_t r2t_sn = 0;
    uint32_t buffer_offset = 0;
    uint32_t length = 0;
  };
  // Where the data segment of a Data-Out belongs; no_task: nobody wants it, drop it.
  struct Placement {
    TaskHandle task = no_task;
    Bytes destination;
  };
  enum class Next { wait, ask, done };

  // no_task when there are too many.
  TaskHandle begin_task(uint32_t itt, const iscsi::LunField& lun);
  void end_task(TaskHandle handle);
  Task* find(TaskHandle handle) { return tasks_.find(handle); }
  const Task* find(TaskHandle handle) const { return tasks_.find(handle); }
  Task& get(TaskHandle handle);  // aborts if there is no such task

  void start_put(Task& task);
  void start_get(Task& task, uint64_t offset, Bytes into);
  // The transfer needs no more of the peer; what still comes for it is dropped.
  void set_over(Task& task);

  // The next piece to ask for. Only while a get is under way and no R2T is.
  R2tWindow open_r2t(Task& task, uint32_t max_burst_length);
  // At the header of a Data-Out. The error is the end of the connection.
  Result<Placement> place(const iscsi::DataOut& pdu);
  // At its end: the data is in the destination. The task is still the one place() named.
  Next placed(TaskHandle handle, size_t length);

  size_t size() const { return tasks_.size(); }

 private:
  static constexpr uint32_t serial_bits = 32 - SlotTable<Task>::slot_bits;
  static constexpr uint32_t serial_mask = (1u << serial_bits) - 1;
  static uint32_t ttt_of(TaskHandle handle, uint32_t serial) {
    return serial << SlotTable<Task>::slot_bits | SlotTable<Task>::slot_of(handle);
  }

  SlotTable<Task> tasks_;
};

}  // namespace vjbod::transport
