// SPDX-License-Identifier: Apache-2.0
#include "common/transport/tcp/target_transfer_table.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/iscsi/errc.h"

namespace vjbod::transport {

using iscsi::Errc;
using Slots = SlotTable<TargetTransferTable::Task>;

TaskHandle TargetTransferTable::begin_task(uint32_t itt, const iscsi::LunField& lun) {
  const TaskHandle handle = tasks_.insert();
  if (handle == no_task) return no_task;
  Task& task = *tasks_.find(handle);
  const uint32_t serial = task.r2t_serial;
  task = {};
  task.handle = handle;
  task.itt = itt;
  task.lun = lun;
  task.r2t_serial = serial;
  return handle;
}

void TargetTransferTable::end_task(TaskHandle handle) {
  VJBOD_CHECK(get(handle).moving == Moving::none, "end_task while a transfer is under way");
  tasks_.erase(handle);
}

TargetTransferTable::Task& TargetTransferTable::get(TaskHandle handle) {
  Task* task = tasks_.find(handle);
  VJBOD_CHECK(task != nullptr, "task {:#x} is not known", handle);
  return *task;
}

void TargetTransferTable::start_put(Task& task) {
  VJBOD_CHECK(task.moving == Moving::none, "one transfer per task at a time");
  task.moving = Moving::put;
  task.over = false;
  ++task.transfer;
}

void TargetTransferTable::start_get(Task& task, uint64_t offset, Bytes into) {
  VJBOD_CHECK(task.moving == Moving::none, "one transfer per task at a time");
  VJBOD_CHECK(offset + into.size() <= UINT32_MAX, "the Buffer Offset has 32 bits");
  task.moving = Moving::get;
  task.over = false;
  ++task.transfer;
  task.offset = offset;
  task.into = into;
  task.r2t_left = 0;
}

void TargetTransferTable::set_over(Task& task) {
  task.over = true;
  task.into = {};
  task.r2t_left = 0;
}

TargetTransferTable::R2tWindow TargetTransferTable::open_r2t(Task& task,
                                                             uint32_t max_burst_length) {
  VJBOD_CHECK(task.moving == Moving::get && !task.over && task.r2t_left == 0);
  task.r2t_serial = (task.r2t_serial + 1) & serial_mask;
  // A TTT of all ones means "none" on the wire (RFC 7143 section 11.7.4).
  if (ttt_of(task.handle, task.r2t_serial) == iscsi::reserved_tag) task.r2t_serial = 0;
  task.r2t_left = static_cast<uint32_t>(std::min<size_t>(task.into.size(), max_burst_length));
  task.r2t_next_data_sn = 0;
  return {.ttt = ttt_of(task.handle, task.r2t_serial),
          .r2t_sn = task.sequence_count++,
          .buffer_offset = static_cast<uint32_t>(task.offset),
          .length = task.r2t_left};
}

Result<TargetTransferTable::Placement> TargetTransferTable::place(const iscsi::DataOut& pdu) {
  if (pdu.ttt == iscsi::reserved_tag) {
    return fail(Errc::protocol, "unsolicited Data-Out for ITT {:#x}, although InitialR2T is Yes",
                pdu.itt);
  }
  const uint32_t slot = Slots::slot_of(pdu.ttt);
  Task* task = tasks_.at_slot(slot);
  const uint32_t serial = pdu.ttt >> Slots::slot_bits;
  // In serial arithmetic: ahead of the slot's last R2T means never sent.
  if (task == nullptr || ((task->r2t_serial - serial) & serial_mask) > serial_mask / 2)
    return fail(Errc::protocol, "Data-Out with TTT {:#x}, which no R2T had", pdu.ttt);
  const bool current = serial == task->r2t_serial && tasks_.find(task->handle) != nullptr &&
                       task->moving == Moving::get && !task->over;
  if (!current) return Placement{};  // the transfer was given up, or the task is over
  if (pdu.itt != task->itt) {
    return fail(Errc::protocol, "Data-Out with TTT {:#x} has ITT {:#x}, its R2T had {:#x}", pdu.ttt,
                pdu.itt, task->itt);
  }
  if (pdu.data_segment_length > task->r2t_left) {
    return fail(Errc::protocol, "Data-Out for ITT {:#x} has {} bytes, its R2T has {} left", pdu.itt,
                pdu.data_segment_length, task->r2t_left);
  }
  if (pdu.buffer_offset != task->offset) {
    return fail(Errc::protocol, "Data-Out for ITT {:#x} has Buffer Offset {}, due is {}", pdu.itt,
                pdu.buffer_offset, task->offset);
  }
  if (pdu.data_sn != task->r2t_next_data_sn) {
    return fail(Errc::bad_sequence_number, "Data-Out for ITT {:#x} has DataSN {}, due is {}",
                pdu.itt, pdu.data_sn, task->r2t_next_data_sn);
  }
  if (pdu.final && pdu.data_segment_length < task->r2t_left) {
    return fail(Errc::protocol, "the last Data-Out for ITT {:#x} leaves {} bytes of its R2T out",
                pdu.itt, task->r2t_left - pdu.data_segment_length);
  }
  ++task->r2t_next_data_sn;
  return Placement{.task = task->handle, .destination = task->into.first(pdu.data_segment_length)};
}

TargetTransferTable::Next TargetTransferTable::placed(TaskHandle handle, size_t length) {
  Task& task = get(handle);
  task.into = task.into.subspan(length);
  task.offset += length;
  task.r2t_left -= static_cast<uint32_t>(length);
  if (task.r2t_left > 0) return Next::wait;
  if (!task.into.empty()) return Next::ask;
  set_over(task);
  return Next::done;
}

}  // namespace vjbod::transport
