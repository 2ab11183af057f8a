// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/device_server.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "target/scsi/command_table.h"

namespace vjbod::scsi {

Result<std::unique_ptr<Nexus>> Nexus::open(Reactor& reactor, std::vector<LunMapping> luns,
                                           size_t tasks_max, NexusOwner& owner) {
  auto server = std::make_unique<DeviceServer>(reactor, tasks_max, owner);
  if (auto set = server->set_luns(std::move(luns)); !set) return fail(std::move(set).error());
  return server;
}

DeviceServer::DeviceServer(Reactor& reactor, size_t tasks_max, NexusOwner& owner)
    : reactor_(reactor),
      owner_(owner),
      mailbox_(std::make_shared<NexusMailbox>(reactor, static_cast<NexusMessages&>(*this))),
      slots_(std::make_unique<Execution[]>(tasks_max)),
      slot_count_(tasks_max) {
  free_slots_.reserve(tasks_max);
  for (size_t i = tasks_max; i-- > 0;) {
    slots_[i].set_server(*this);
    free_slots_.push_back(&slots_[i]);
  }
}

DeviceServer::~DeviceServer() {
  VJBOD_CHECK(idle(), "a nexus is destroyed before its tasks have ended");
  mailbox_->close();
  for (const auto& unit : luns_.units()) unit->unit->detach(mailbox_);
  for (const auto& unit : removed_) unit->unit->detach(mailbox_);
}

// --- tasks ---

void DeviceServer::submit(Task& task) {
  VJBOD_CHECK(!draining_, "a task comes to a nexus that drains");
  if (free_slots_.empty()) return task.port->complete(task, with_status(Status::task_set_full));
  Execution& execution = *free_slots_.back();
  free_slots_.pop_back();
  MappedUnit* const unit = luns_.find(task.lun);
  execution.begin(task, unit, ++last_sequence_);
  if (unit == nullptr) return execute(execution);
  if (unit->tasks.enter(execution, task.attribute)) execute(execution);
}

// What may keep a command from being begun, in the order of SAM-5 5.3.3 and SPC-4 4.3.
void DeviceServer::execute(Execution& execution) {
  const Task& task = execution.task();
  if (task.aborted) return execution.finish(with_status(Status::task_aborted));
  bool opcode_known = false;
  const CommandEntry* const entry = find_command(task.cdb, opcode_known);
  if (!execution.has_unit()) {
    if (entry == nullptr || !entry->without_unit) {
      return execution.finish(illegal_request(asc::logical_unit_not_supported));
    }
  } else if (MappedUnit& unit = execution.unit(); unit.attentions.any()) {
    if (entry == nullptr || !entry->during_unit_attention) {
      return execution.finish(check_condition(
          {.key = SenseKey::unit_attention, .additional = sense_of(*unit.attentions.take())}));
    }
  }
  if (entry == nullptr) {
    return execution.finish(opcode_known ? invalid_field_in_cdb(1, 4)
                                         : illegal_request(asc::invalid_operation_code));
  }
  begin_command(execution, *entry);
}

void DeviceServer::begin_command(Execution& execution, const CommandEntry& entry) {
  constexpr auto naca = std::byte{0x04};
  const Task& task = execution.task();
  if (execution.has_unit()) {
    const MappedUnit& unit = execution.unit();
    if (entry.needs_unmap && !unit.can_unmap) {
      return execution.finish(illegal_request(asc::invalid_operation_code));
    }
    if (entry.writes && unit.read_only) {
      return execution.finish(
          check_condition({.key = SenseKey::data_protect, .additional = asc::write_protected}));
    }
  }
  const auto control = static_cast<uint16_t>(entry.cdb_bytes - 1);
  if ((task.cdb[control] & naca) != std::byte{0}) {
    return execution.finish(invalid_field_in_cdb(control, 2));  // NORMACA is 0
  }
  if (task.attribute == TaskAttribute::aca) {
    return execution.finish(illegal_request(asc::invalid_message_error));
  }
  const auto command = decode_cdb(task.cdb);
  VJBOD_CHECK(command.has_value(), "the table has {}, the decoder does not", entry.name);
  entry.begin(execution, *command);
}

void DeviceServer::return_parameters(Execution& execution, const ByteWriter& data,
                                     uint64_t allocation_length) {
  VJBOD_CHECK(data.ok(), "parameter data beyond {} bytes", parameters_.size());
  const uint64_t actual = std::min<uint64_t>(data.written(), allocation_length);
  const auto moved =
      static_cast<size_t>(std::min(actual, execution.expected_bytes(DataDirection::read)));
  const Bytes buffer = execution.task().buffer;
  VJBOD_CHECK(buffer.size() >= moved, "a task's buffer is shorter than its expected data");
  if (moved == 0) return execution.finish(good(actual));
  std::memcpy(buffer.data(), parameters_.data(), moved);
  execution.put_and_finish(0, moved, good(actual));
}

void DeviceServer::release(Execution& execution) {
  free_slots_.push_back(&execution);
}

void DeviceServer::after_completion(MappedUnit* unit) {
  if (unit != nullptr && unit->tasks.has_waiting()) start_waiting(*unit);
  if (!managing_.empty() || !held_barriers_.empty()) check_waiting();
  if (draining_ || !removed_.empty()) reactor_.defer(*this);
}

// A loop, not a recursion: a task that ends at once comes back here through after_completion().
void DeviceServer::start_waiting(MappedUnit& unit) {
  if (std::exchange(unit.starting_tasks, true)) return;
  while (TaskSetMember* const next = unit.tasks.next()) execute(static_cast<Execution&>(*next));
  unit.starting_tasks = false;
}

// --- the end of tasks ---

// All are marked before the first is stopped: the end of one may let another begin, and completing
// one may bring in a new task, which is not meant.
template <typename Affected>
void DeviceServer::abort_if(Affected affected) {
  const uint64_t newest = last_sequence_;
  const auto meant = [&](const Execution& execution) {
    return execution.in_use() && execution.sequence() <= newest && affected(execution);
  };
  for (size_t i = 0; i < slot_count_; ++i) {
    if (meant(slots_[i])) slots_[i].task().aborted = true;
  }
  for (size_t i = 0; i < slot_count_; ++i) {
    if (meant(slots_[i])) slots_[i].stop();
  }
}

template <typename Affected>
bool DeviceServer::any_left(uint64_t newest, Affected affected) const {
  return std::any_of(slots_.get(), slots_.get() + slot_count_, [&](const Execution& execution) {
    return execution.in_use() && execution.task().aborted && execution.sequence() <= newest &&
           affected(execution);
  });
}

void DeviceServer::stop_tasks_of(MappedUnit& unit) {
  abort_if([&unit](const Execution& execution) {
    return execution.has_unit() && &execution.unit() == &unit;
  });
}

void DeviceServer::manage(Management& request) {
  VJBOD_CHECK(!draining_, "a task management request comes to a nexus that drains");
  request.newest_task = last_sequence_;
  request.waits_for_others = false;
  request.result = ManagementResult::done;
  managing_.push_back(request);
  const bool for_unit = request.function == ManagementFunction::abort_task_set ||
                        request.function == ManagementFunction::clear_task_set ||
                        request.function == ManagementFunction::logical_unit_reset;
  MappedUnit* const unit = for_unit ? luns_.find(request.lun) : nullptr;
  if (for_unit && unit == nullptr) {
    request.result = ManagementResult::no_such_unit;
    return check_waiting();
  }
  switch (request.function) {
    case ManagementFunction::abort_task: {
      const auto* target = static_cast<const Execution*>(request.task->execution);
      VJBOD_CHECK(target != nullptr, "the task to be aborted is not here");
      request.newest_task = target->sequence();
      abort_if([target](const Execution& execution) { return &execution == target; });
      break;
    }
    case ManagementFunction::abort_task_set:
    case ManagementFunction::clear_task_set: stop_tasks_of(*unit); break;
    case ManagementFunction::logical_unit_reset: reset_unit(*unit, request); break;
    case ManagementFunction::target_reset: reset_all(request); break;
  }
  check_waiting();
}

std::shared_ptr<ResetBarrier> DeviceServer::make_barrier(Management& request) {
  request.waits_for_others = true;
  return std::make_shared<ResetBarrier>([mailbox = mailbox_, &request] {
    mailbox->post([&request](NexusMessages& messages) { messages.on_others_reset(request); });
  });
}

void DeviceServer::reset_unit(MappedUnit& unit, Management& request) {
  unit.unit->reset_others(mailbox_, make_barrier(request));
  unit.attentions.raise(UnitAttention::device_reset);
  stop_tasks_of(unit);
}

void DeviceServer::reset_all(Management& request) {
  const std::shared_ptr<ResetBarrier> barrier = make_barrier(request);
  for (const auto& unit : luns_.units()) {
    unit->unit->reset_others(mailbox_, barrier);
    unit->attentions.raise(UnitAttention::device_reset);
  }
  abort_if([](const Execution&) { return true; });
}

bool DeviceServer::waits_for_tasks(const Management& request) const {
  switch (request.function) {
    case ManagementFunction::abort_task:
      return any_left(request.newest_task, [&](const Execution& execution) {
        return execution.sequence() == request.newest_task;
      });
    case ManagementFunction::abort_task_set:
    case ManagementFunction::clear_task_set:
    case ManagementFunction::logical_unit_reset: {
      const auto number = decode_lun(request.lun);
      return any_left(request.newest_task, [&](const Execution& execution) {
        return decode_lun(execution.task().lun) == number;
      });
    }
    case ManagementFunction::target_reset:
      return any_left(request.newest_task, [](const Execution&) { return true; });
  }
  return false;
}

void DeviceServer::check_waiting() {
  managing_.for_each([&](Management& request) {
    if (request.waits_for_others || waits_for_tasks(request)) return;
    static_cast<ListNode<Management>&>(request).unlink();
    managed_.push_back(request);
    reactor_.defer(*this);
  });
  std::erase_if(held_barriers_, [&](const HeldBarrier& held) {
    return !any_left(held.newest_task, [&](const Execution& execution) {
      return execution.has_unit() && execution.unit().unit.get() == held.unit;
    });
  });
}

void DeviceServer::drain() {
  draining_ = true;
  abort_if([](const Execution&) { return true; });
  reactor_.defer(*this);
}

bool DeviceServer::idle() const {
  return free_slots_.size() == slot_count_ && managing_.empty() && managed_.empty();
}

void DeviceServer::run_deferred() {
  IntrusiveList<Management, Management> done;
  done.append(managed_);
  while (!done.empty()) {
    Management& request = done.pop_front();
    request.owner->on_managed(request, request.result);
  }
  close_removed_units();
  if (draining_ && idle() && !std::exchange(drained_reported_, true)) owner_.on_nexus_drained();
}

// --- messages ---

void DeviceServer::on_unit_reset(LogicalUnit& unit, std::shared_ptr<ResetBarrier> barrier) {
  for (const auto& mapped : luns_.units()) {
    if (mapped->unit.get() == &unit) mapped->attentions.raise(UnitAttention::device_reset);
  }
  held_barriers_.push_back({&unit, last_sequence_, std::move(barrier)});
  abort_if([&](const Execution& execution) {
    return execution.has_unit() && execution.unit().unit.get() == &unit;
  });
  check_waiting();
}

void DeviceServer::on_capacity_changed(LogicalUnit& unit) {
  for (const auto& mapped : luns_.units()) {
    if (mapped->unit.get() == &unit && mapped->refresh_geometry()) {
      mapped->attentions.raise(UnitAttention::capacity_changed);
    }
  }
}

void DeviceServer::on_others_reset(Management& request) {
  request.waits_for_others = false;
  check_waiting();
}

}  // namespace vjbod::scsi
