// SPDX-License-Identifier: Apache-2.0
// A session's SCSI commands: from the PDU to the task, its data phase, and the response.
#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/iscsi/errc.h"
#include "target/iscsi/session.h"

namespace vjbod::target {

namespace {

scsi::TaskAttribute attribute_of(iscsi::TaskAttribute attribute) {
  switch (attribute) {
    case iscsi::TaskAttribute::ordered: return scsi::TaskAttribute::ordered;
    case iscsi::TaskAttribute::head_of_queue: return scsi::TaskAttribute::head_of_queue;
    case iscsi::TaskAttribute::aca: return scsi::TaskAttribute::aca;
    default: return scsi::TaskAttribute::simple;
  }
}

}  // namespace

bool Session::accept_command(SerialNumber cmd_sn, bool immediate, ConstBytes header) {
  using Verdict = iscsi::CommandWindow::Verdict;
  const Verdict verdict = window_->take(cmd_sn, immediate);
  update_window();
  switch (verdict) {
    case Verdict::accepted: return true;
    case Verdict::ignored: return false;
    case Verdict::too_many_immediate:
      reject(iscsi::RejectReason::immediate_command_reject, header);
      return false;
    case Verdict::hole:
      terminate({iscsi::Errc::bad_sequence_number,
                 fmt::format("the initiator left out commands: CmdSN {} came where {} was due",
                             cmd_sn.value, numbers_.exp_cmd_sn.value)});
      return false;
  }
  return false;
}

void Session::finish_command(bool immediate) {
  window_->finished(immediate);
  update_window();
}

void Session::update_window() {
  numbers_.exp_cmd_sn = window_->exp_cmd_sn();
  numbers_.max_cmd_sn = window_->max_cmd_sn();
}

CommandTask* Session::take_task() {
  if (free_slots_.empty()) return nullptr;
  CommandTask& task = tasks_[free_slots_.back()];
  free_slots_.pop_back();
  return &task;
}

CommandTask* Session::find_task(transport::TaskHandle handle) {
  const auto found = std::find(handles_.begin(), handles_.end(), handle);
  return found == handles_.end() ? nullptr : &tasks_[static_cast<size_t>(found - handles_.begin())];
}

CommandTask* Session::find_running_task(uint32_t itt) {
  const auto found = std::find_if(tasks_.begin(), tasks_.end(), [itt](const CommandTask& task) {
    return task.state == CommandTask::State::running && task.itt == itt;
  });
  return found == tasks_.end() ? nullptr : &*found;
}

void Session::on_scsi_command(const iscsi::ScsiCommand& command,
                              const transport::ReceivedControl& received) {
  if (!nexus_) {  // a discovery session
    mover_->end_task(received.task);
    reject(iscsi::RejectReason::protocol_error, received.header_bytes);
    return;
  }
  if (!accept_command(command.cmd_sn, command.immediate, received.header_bytes)) {
    mover_->end_task(received.task);
    return;
  }
  const uint32_t expected =
      command.read || command.write ? command.expected_data_transfer_length : 0;
  const iscsi::NegotiatedParameters& agreed = login_->outcome().parameters;
  if (received.data.size() > 0 &&
      (!command.write || !agreed.immediate_data || received.data.size() > expected ||
       received.data.size() > agreed.first_burst_length)) {
    mover_->end_task(received.task);
    protocol_error(
        fmt::format("{} bytes of immediate data with a command that may have none or "
                    "fewer",
                    received.data.size()));
    return;
  }
  if (command.read && command.write) {  // no bidirectional command exists here
    refuse_command(command, received.task, scsi::Status::check_condition);
    return;
  }
  CommandTask* task = take_task();
  if (task == nullptr) {  // only while responses of finished tasks still wait to leave
    refuse_command(command, received.task, scsi::Status::task_set_full);
    return;
  }
  Buffer memory;
  if (expected > 0) {
    memory = host_.buffers().acquire(std::min<size_t>(expected, scsi::task_buffer_bytes_max));
    if (!memory) {
      free_slots_.push_back(task->slot);
      refuse_command(command, received.task, scsi::Status::busy);
      return;
    }
  }
  task->state = CommandTask::State::running;
  task->itt = command.itt;
  task->cmd_sn = command.cmd_sn;
  task->handle = received.task;
  handles_[task->slot] = received.task;
  task->immediate_bytes = static_cast<uint32_t>(received.data.size());
  task->memory = std::move(memory);
  task->buffer = task->memory.bytes();
  if (!received.data.empty()) {
    std::memcpy(task->buffer.data(), received.data.data(), received.data.size());
  }
  task->immediate = command.immediate;
  task->port = this;
  task->execution = nullptr;
  task->aborted = false;
  task->lun = command.lun;
  task->cdb = command.cdb;
  task->attribute = attribute_of(command.attribute);
  task->direction = command.read    ? scsi::DataDirection::read
                    : command.write ? scsi::DataDirection::write
                                    : scsi::DataDirection::none;
  task->expected_data_bytes = expected;
  ++running_tasks_;
  nexus_->submit(*task);
}

void Session::refuse_command(const iscsi::ScsiCommand& command, transport::TaskHandle handle,
                             scsi::Status status) {
  iscsi::ScsiResponse response;
  response.itt = command.itt;
  response.status = static_cast<uint8_t>(status);
  response.underflow = command.expected_data_transfer_length > 0;
  response.residual_count = command.expected_data_transfer_length;
  std::array<std::byte, 20> sense{};
  size_t sense_bytes = 0;
  if (status == scsi::Status::check_condition) {
    // ILLEGAL REQUEST, INVALID FIELD IN COMMAND INFORMATION UNIT; fixed format (SPC-4 4.5.3), after
    // its two bytes of length.
    sense = {std::byte{0}, std::byte{18}, std::byte{0x70}, std::byte{0}, std::byte{0x05}};
    sense[9] = std::byte{10};
    sense[14] = std::byte{0x0e};
    sense[15] = std::byte{0x03};
    sense_bytes = sense.size();
  }
  finish_command(command.immediate);
  send(response, ConstBytes(sense).first(sense_bytes));
  mover_->end_task(handle);
}

void Session::put_data(scsi::Task& scsi_task, uint64_t offset, size_t length) {
  auto& task = static_cast<CommandTask&>(scsi_task);
  VJBOD_CHECK(!task.transferring && task.direction == scsi::DataDirection::read);
  VJBOD_CHECK(offset + length <= task.expected_data_bytes && length <= task.buffer.size());
  if (length == 0 || state_ == State::draining) {
    data_moved_later(task);
    return;
  }
  counters_.read_bytes += length;
  task.transferring = true;
  mover_->put_data(task.handle, offset, task.buffer.first(length));
}

void Session::get_data(scsi::Task& scsi_task, uint64_t offset, size_t length) {
  auto& task = static_cast<CommandTask&>(scsi_task);
  VJBOD_CHECK(!task.transferring && task.direction == scsi::DataDirection::write);
  VJBOD_CHECK(offset + length <= task.expected_data_bytes && length <= task.buffer.size());
  counters_.write_bytes += length;
  // Immediate data came with the command and stands at the buffer's start.
  const size_t here = offset == 0 ? std::min<size_t>(task.immediate_bytes, length) : 0;
  if (here == length || state_ == State::draining) {
    data_moved_later(task);
    return;
  }
  task.transferring = true;
  mover_->get_data(task.handle, offset + here, task.buffer.subspan(here, length - here));
}

void Session::cancel_data(scsi::Task& scsi_task) {
  auto& task = static_cast<CommandTask&>(scsi_task);
  // Not transferring: its on_data_moved is on the way already, or on_closed will send it.
  if (task.transferring && state_ != State::draining) mover_->cancel_transfer(task.handle);
}

void Session::on_transfer_done(transport::TaskHandle handle) {
  CommandTask* task = find_task(handle);
  VJBOD_CHECK(task != nullptr && task->transferring, "a transfer ended that was not under way");
  task->transferring = false;
  if (task->state == CommandTask::State::completed) {
    release(*task);
  } else if (task->execution != nullptr) {
    task->execution->on_data_moved(*task);
  }
}

void Session::put_data_and_complete(scsi::Task& scsi_task, uint64_t offset, size_t length,
                                    const scsi::Outcome& outcome) {
  auto& task = static_cast<CommandTask&>(scsi_task);
  VJBOD_CHECK(!task.transferring && task.direction == scsi::DataDirection::read);
  VJBOD_CHECK(offset + length <= task.expected_data_bytes && length <= task.buffer.size());
  if (length > 0 && state_ == State::full_feature && !task.aborted) {
    counters_.read_bytes += length;
    task.transferring = true;
    mover_->put_data(task.handle, offset, task.buffer.first(length));
  }
  complete(task, outcome);
}

void Session::complete(scsi::Task& scsi_task, const scsi::Outcome& outcome) {
  auto& task = static_cast<CommandTask&>(scsi_task);
  VJBOD_CHECK(task.state == CommandTask::State::running);
  task.state = CommandTask::State::completed;
  --running_tasks_;
  finish_command(task.immediate);
  // A task that was aborted gets no response (SAM-5 5.5; RFC 7143 section 11.5.1).
  if (state_ == State::full_feature && !task.aborted) send_response(task, outcome);
  if (!task.transferring) release(task);
}

void Session::send_response(CommandTask& task, const scsi::Outcome& outcome) {
  iscsi::ScsiResponse response;
  response.itt = task.itt;
  response.status = static_cast<uint8_t>(outcome.status);
  response.exp_data_sn = mover_->data_sequence_count(task.handle);
  if (outcome.actual_data_bytes > task.expected_data_bytes) {
    response.overflow = true;
    response.residual_count = static_cast<uint32_t>(
        std::min<uint64_t>(outcome.actual_data_bytes - task.expected_data_bytes, UINT32_MAX));
  } else if (outcome.actual_data_bytes < task.expected_data_bytes) {
    response.underflow = true;
    response.residual_count =
        static_cast<uint32_t>(task.expected_data_bytes - outcome.actual_data_bytes);
  }
  if (outcome.status == scsi::Status::good) {
    if (task.direction == scsi::DataDirection::read) ++counters_.read_ops;
    if (task.direction == scsi::DataDirection::write) ++counters_.write_ops;
  }
  if (outcome.sense_bytes == 0) {
    send(response, {});
    return;
  }
  std::array<std::byte, 2 + scsi::sense_bytes_max> data;
  store_big_endian<uint16_t>(data.data(), outcome.sense_bytes);
  std::memcpy(data.data() + 2, outcome.sense.data(), outcome.sense_bytes);
  send(response, ConstBytes(data).first(2u + outcome.sense_bytes));
}

void Session::release(CommandTask& task) {
  task.unlink();
  if (state_ != State::draining) mover_->end_task(task.handle);
  handles_[task.slot] = transport::no_task;
  task.handle = transport::no_task;
  task.memory.reset();
  task.buffer = {};
  task.execution = nullptr;
  task.state = CommandTask::State::free;
  free_slots_.push_back(task.slot);
}

}  // namespace vjbod::target
