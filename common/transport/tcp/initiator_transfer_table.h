// SPDX-License-Identifier: Apache-2.0
// The initiator's side of transfer bookkeeping: which Data-In may come for which task and where it
// belongs, which R2Ts ask for what (RFC 7143 sections 11.7 and 11.8). Pure; one connection's, on
// its thread; no allocation once grown to its working size.
//
// Data comes in order (DataPDUInOrder and DataSequenceInOrder are Yes): the next byte due is all
// there is to know about a read. One R2T per task at a time (MaxOutstandingR2T is 1).
#pragma once

#include <cstdint>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/iscsi/pdu.h"
#include "common/transport/data_mover.h"
#include "common/transport/tcp/slot_table.h"
#include "common/transport/tcp/tag_map.h"

namespace vjbod::transport {

class InitiatorTransferTable {
 public:
  static constexpr size_t tasks_max = SlotTable<int>::slots_max;

  struct Task {
    uint32_t itt = 0;
    ConstBytes write;
    Bytes read;
    bool command_sent = false;
    uint64_t data_in_bytes = 0;   // from the start of `read`
    uint64_t data_out_bytes = 0;  // immediate data included
    uint32_t sequence_count = 0;  // Data-In PDUs and R2Ts so far: the next DataSN and R2TSN
    uint32_t r2t_left = 0;        // bytes of the R2T under way still to be sent
  };
  // Where the data segment of a Data-In belongs.
  struct Placement {
    TaskHandle task = no_task;
    Bytes destination;
  };

  // Aborts when the ITT is in use or there are too many.
  TaskHandle begin_task(uint32_t itt, ConstBytes write, Bytes read);
  Task* find(TaskHandle handle) { return tasks_.find(handle); }
  Task& get(TaskHandle handle);  // aborts if there is no such task
  // Each of these errors is the end of the connection.
  Result<Placement> place(const iscsi::DataIn& pdu);  // at the header
  Result<TaskHandle> accept_r2t(const iscsi::R2t& pdu, uint32_t max_burst_length);
  // The task of a SCSI Response, or of a Data-In with status: it is over, and removed.
  Result<Task> take_finished(uint32_t itt, std::string_view pdu_name);

  TaskHandle handle_of(uint32_t itt) const { return by_itt_.find(itt); }
  size_t size() const { return tasks_.size(); }

 private:
  Result<TaskHandle> known(uint32_t itt, std::string_view pdu_name) const;

  SlotTable<Task> tasks_;
  TagMap by_itt_;
};

}  // namespace vjbod::transport
