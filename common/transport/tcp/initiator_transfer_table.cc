// SPDX-License-Identifier: Apache-2.0
#include "common/transport/tcp/initiator_transfer_table.h"

#include "common/base/check.h"
#include "common/iscsi/errc.h"

namespace vjbod::transport {

using iscsi::Errc;

TaskHandle InitiatorTransferTable::begin_task(uint32_t itt, ConstBytes write, Bytes read) {
  VJBOD_CHECK(write.empty() || read.empty(), "a task either reads or writes");
  VJBOD_CHECK(write.size() <= UINT32_MAX && read.size() <= UINT32_MAX);
  const TaskHandle handle = tasks_.insert();
  VJBOD_CHECK(handle != no_task, "more than {} tasks at once", tasks_max);
  VJBOD_CHECK(by_itt_.insert(itt, handle), "ITT {:#x} is in use", itt);
  Task& task = *tasks_.find(handle);
  task = {};
  task.itt = itt;
  task.write = write;
  task.read = read;
  return handle;
}

InitiatorTransferTable::Task& InitiatorTransferTable::get(TaskHandle handle) {
  Task* task = tasks_.find(handle);
  VJBOD_CHECK(task != nullptr, "task {:#x} is not known", handle);
  return *task;
}

Result<TaskHandle> InitiatorTransferTable::known(uint32_t itt, std::string_view pdu_name) const {
  const TaskHandle handle = by_itt_.find(itt);
  if (handle == no_task)
    return fail(Errc::protocol, "{} for ITT {:#x}, which is no task", pdu_name, itt);
  if (!tasks_.find(handle)->command_sent) {
    return fail(Errc::protocol, "{} for ITT {:#x}, whose command was not sent yet", pdu_name, itt);
  }
  return handle;
}

Result<InitiatorTransferTable::Placement> InitiatorTransferTable::place(const iscsi::DataIn& pdu) {
  const Result<TaskHandle> handle = known(pdu.itt, "Data-In");
  if (!handle) return fail(handle.error());
  Task& task = *tasks_.find(*handle);
  if (task.read.empty() && pdu.data_segment_length > 0)
    return fail(Errc::protocol, "Data-In for ITT {:#x}, which does not read", pdu.itt);
  if (pdu.data_sn != task.sequence_count) {
    return fail(Errc::bad_sequence_number, "Data-In for ITT {:#x} has DataSN {}, due is {}",
                pdu.itt, pdu.data_sn, task.sequence_count);
  }
  ++task.sequence_count;
  if (pdu.data_segment_length == 0) return Placement{.task = *handle, .destination = {}};
  if (pdu.buffer_offset != task.data_in_bytes) {
    return fail(Errc::protocol, "Data-In for ITT {:#x} has Buffer Offset {}, due is {}", pdu.itt,
                pdu.buffer_offset, task.data_in_bytes);
  }
  if (pdu.data_segment_length > task.read.size() - task.data_in_bytes) {
    return fail(Errc::protocol, "Data-In for ITT {:#x} ends at {}, the read at {}", pdu.itt,
                uint64_t{pdu.buffer_offset} + pdu.data_segment_length, task.read.size());
  }
  const Bytes destination = task.read.subspan(task.data_in_bytes, pdu.data_segment_length);
  task.data_in_bytes += destination.size();
  return Placement{.task = *handle, .destination = destination};
}

Result<TaskHandle> InitiatorTransferTable::accept_r2t(const iscsi::R2t& pdu,
                                                      uint32_t max_burst_length) {
  const Result<TaskHandle> handle = known(pdu.itt, "R2T");
  if (!handle) return handle;
  Task& task = *tasks_.find(*handle);
  if (pdu.ttt == iscsi::reserved_tag)
    return fail(Errc::bad_field, "R2T for ITT {:#x} without a Target Transfer Tag", pdu.itt);
  if (task.r2t_left > 0) {
    return fail(Errc::protocol, "R2T for ITT {:#x} while another one is not answered", pdu.itt);
  }
  if (pdu.r2t_sn != task.sequence_count) {
    return fail(Errc::bad_sequence_number, "R2T for ITT {:#x} has R2TSN {}, due is {}", pdu.itt,
                pdu.r2t_sn, task.sequence_count);
  }
  const uint32_t length = pdu.desired_data_transfer_length;
  if (length == 0 || length > max_burst_length) {
    return fail(Errc::bad_field, "R2T for ITT {:#x} asks for {} bytes; MaxBurstLength is {}",
                pdu.itt, length, max_burst_length);
  }
  if (pdu.buffer_offset > task.write.size() || length > task.write.size() - pdu.buffer_offset) {
    return fail(Errc::protocol, "R2T for ITT {:#x} asks for bytes {} to {}, the write has {}",
                pdu.itt, pdu.buffer_offset, uint64_t{pdu.buffer_offset} + length,
                task.write.size());
  }
  ++task.sequence_count;
  task.r2t_left = length;
  return handle;
}

Result<InitiatorTransferTable::Task> InitiatorTransferTable::take_finished(
    uint32_t itt, std::string_view pdu_name) {
  const Result<TaskHandle> handle = known(itt, pdu_name);
  if (!handle) return fail(handle.error());
  Task finished = *tasks_.find(*handle);
  tasks_.erase(*handle);
  by_itt_.erase(itt);
  return finished;
}

}  // namespace vjbod::transport
