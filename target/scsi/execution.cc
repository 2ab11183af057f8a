// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/execution.h"

#include "common/base/check.h"
#include "target/scsi/device_server.h"

namespace vjbod::scsi {

void Execution::begin(Task& task, MappedUnit* unit, uint64_t sequence) {
  VJBOD_CHECK(task_ == nullptr && task.execution == nullptr);
  task_ = &task;
  task.execution = this;
  unit_ = unit;
  sequence_ = sequence;
  work_ = nullptr;
  step_ = Step::none;
  data_cancelled_ = false;
}

void Execution::put(uint64_t offset, size_t length) {
  VJBOD_CHECK(step_ == Step::none && length <= task_->buffer.size());
  step_ = Step::data;
  task_->port->put_data(*task_, offset, length);
}

void Execution::get(uint64_t offset, size_t length) {
  VJBOD_CHECK(step_ == Step::none && length <= task_->buffer.size());
  step_ = Step::data;
  task_->port->get_data(*task_, offset, length);
}

void Execution::submit(backstore::OpKind kind, uint64_t offset_bytes, Bytes data, Flags flags) {
  VJBOD_CHECK(step_ == Step::none);
  step_ = Step::operation;
  op_.kind = kind;
  op_.fua = flags.fua;
  op_.may_unmap = false;
  op_.offset_bytes = offset_bytes;
  op_.length_bytes = data.size();
  op_.data = data;
  op_.owner = this;
  unit_->queue->submit(op_);
}

void Execution::submit_range(backstore::OpKind kind, uint64_t offset_bytes, uint64_t length_bytes,
                             bool may_unmap) {
  VJBOD_CHECK(step_ == Step::none);
  step_ = Step::operation;
  op_.kind = kind;
  op_.fua = false;
  op_.may_unmap = may_unmap;
  op_.offset_bytes = offset_bytes;
  op_.length_bytes = length_bytes;
  op_.data = {};
  op_.owner = this;
  unit_->queue->submit(op_);
}

void Execution::flush() {
  op_.kind = backstore::OpKind::flush;
  if (const std::error_code error = unit_->unit->flush_error()) return work_->on_op_done(error);
  submit_range(backstore::OpKind::flush, 0, 0, false);
}

void Execution::want_scratch() {
  VJBOD_CHECK(step_ == Step::none && !has_scratch_);
  step_ = Step::scratch;
  server_->scratch().acquire(*this);
}

void Execution::on_data_moved(Task& task) {
  VJBOD_CHECK(step_ == Step::data && &task == task_);
  step_ = Step::none;
  if (stop_if_aborted()) return;
  work_->on_data_moved();
}

void Execution::on_op_done(backstore::Op& op, std::error_code error) {
  VJBOD_CHECK(step_ == Step::operation && &op == &op_);
  step_ = Step::none;
  if (error) [[unlikely]]
    unit_->note_failure(op, error);
  if (op.kind == backstore::OpKind::flush) {
    if (error && !is_shortage(error)) unit_->unit->set_flush_error(error);
    // Somebody else's flush may have taken the error that was meant for this one as well.
    if (!error) error = unit_->unit->flush_error();
  }
  if (stop_if_aborted()) return;
  work_->on_op_done(error);
}

void Execution::on_scratch(Bytes memory) {
  step_ = Step::none;
  has_scratch_ = true;
  if (stop_if_aborted()) return;
  work_->on_scratch(memory);
}

bool Execution::stop_if_aborted() {
  if (!task_->aborted) return false;
  finish(with_status(Status::task_aborted));
  return true;
}

void Execution::stop() {
  switch (step_) {
    case Step::none:
      // Waiting in the task set; in the middle of a step of its own it stops by itself.
      if (work_ == nullptr) finish(with_status(Status::task_aborted));
      return;
    case Step::scratch:
      ScratchUser::unlink();
      finish(with_status(Status::task_aborted));
      return;
    case Step::data:
      if (!std::exchange(data_cancelled_, true)) task_->port->cancel_data(*task_);
      return;
    case Step::operation: return;
  }
}

template <typename LastCall>
void Execution::end(LastCall last_call) {
  VJBOD_CHECK(task_ != nullptr && (step_ == Step::none || step_ == Step::scratch));
  DeviceServer& server = *server_;
  Task& task = *std::exchange(task_, nullptr);
  MappedUnit* const unit = std::exchange(unit_, nullptr);
  const bool had_scratch = std::exchange(has_scratch_, false);
  if (unit != nullptr) unit->tasks.leave(*this);
  step_ = Step::none;
  task.execution = nullptr;
  server.release(*this);
  last_call(task);
  if (had_scratch) server.scratch().release();
  server.after_completion(unit);
}

void Execution::finish(const Outcome& outcome) {
  end([&](Task& task) { task.port->complete(task, outcome); });
}

void Execution::put_and_finish(uint64_t offset, size_t length, const Outcome& outcome) {
  VJBOD_CHECK(length <= task_->buffer.size());
  end([&](Task& task) { task.port->put_data_and_complete(task, offset, length, outcome); });
}

}  // namespace vjbod::scsi
