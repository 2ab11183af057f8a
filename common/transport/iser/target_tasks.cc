// SPDX-License-Identifier: Apache-2.0
#include "common/transport/iser/target_tasks.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/transport/rdma_errc.h"

namespace vjbod::transport {

using rdma::SendRequest;

TaskHandle TargetTasks::begin(const iscsi::ScsiCommand& command, const IserHeader& header,
                              size_t immediate_bytes) {
  const TaskHandle handle = tasks_.insert();
  if (handle == no_task) return no_task;
  Task& task = *tasks_.find(handle);
  task = {};
  task.itt = command.itt;
  task.lent = header;
  task.bytes = command.expected_data_transfer_length;
  task.immediate = static_cast<uint32_t>(immediate_bytes);
  by_itt_.insert(command.itt, handle);  // a tag that is in use stays the first task's
  return handle;
}

TargetTasks::Task& TargetTasks::get(TaskHandle handle) {
  Task* task = tasks_.find(handle);
  VJBOD_CHECK(task != nullptr, "task {:#x} is not known", handle);
  return *task;
}

void TargetTasks::end(TaskHandle handle) {
  const Task& task = get(handle);
  VJBOD_CHECK(!task.moving, "end_task while a transfer is under way");
  if (by_itt_.find(task.itt) == handle) by_itt_.erase(task.itt);
  tasks_.erase(handle);
}

std::optional<uint32_t> TargetTasks::key_to_invalidate(uint32_t itt) {
  const TaskHandle handle = by_itt_.find(itt);
  if (handle == no_task) return std::nullopt;
  const Task& task = *tasks_.find(handle);
  if (task.lent.read && task.lent.write) return std::nullopt;
  if (task.moving && task.gets && task.requests > 0) return std::nullopt;
  if (task.lent.read) return task.lent.read->key;
  if (task.lent.write) return task.lent.write->key;
  return std::nullopt;
}

Status TargetTasks::start_put(TaskHandle handle, uint64_t offset, ConstBytes data,
                              SendQueue& queue) {
  Task& task = get(handle);
  VJBOD_CHECK(!task.moving, "one transfer per task at a time");
  VJBOD_CHECK(offset <= task.bytes && data.size() <= task.bytes - offset,
              "a put beyond the task's data");
  task.moving = true;
  task.gets = false;
  task.over = false;
  if (data.empty()) return {};
  if (!task.lent.read) {
    return fail(RdmaErrc::bad_key, "it reads {} bytes but lends no buffer for them (ITT {:#x})",
                task.bytes, task.itt);
  }
  const RemoteBuffer there{task.lent.read->key, task.lent.read->address + offset};
  return start(task, handle, SendRequest::Kind::write, data, there, queue);
}

Status TargetTasks::start_get(TaskHandle handle, uint64_t offset, Bytes into, SendQueue& queue) {
  Task& task = get(handle);
  VJBOD_CHECK(!task.moving, "one transfer per task at a time");
  task.moving = true;
  task.gets = true;
  task.over = false;
  if (into.empty()) return {};
  VJBOD_CHECK(offset <= task.bytes && into.size() <= task.bytes - offset,
              "a get beyond the task's data");
  VJBOD_CHECK(offset >= task.immediate, "immediate data was asked for again");
  if (!task.lent.write) {
    return fail(RdmaErrc::bad_key, "it writes {} bytes but lends no buffer for them (ITT {:#x})",
                task.bytes, task.itt);
  }
  const RemoteBuffer there{task.lent.write->key,
                           task.lent.write->address + (offset - task.immediate)};
  return start(task, handle, SendRequest::Kind::read, into, there, queue);
}

Status TargetTasks::start(Task& task, TaskHandle handle, SendRequest::Kind kind, ConstBytes memory,
                          const RemoteBuffer& there, SendQueue& queue) {
  const auto found = cache_.find(memory);
  if (!found) return fail(found.error());
  const rdma::Region* region = *found;
  if (region == nullptr) {
    auto own = cache_.domain().register_memory(memory, rdma::Access::local);
    if (!own) return fail(std::move(own).error());
    task.region = std::move(*own);
    region = task.region.get();
  }
  const size_t piece_max = cache_.domain().device().message_bytes_max;
  for (size_t at = 0; at < memory.size();) {
    const ConstBytes piece = memory.subspan(at, std::min(piece_max, memory.size() - at));
    SendRequest request;
    request.kind = kind;
    request.memory = piece;
    request.local_key = region->local_key();
    request.remote_address = there.address + at;
    request.remote_key = there.key;
    at += piece.size();
    ++task.requests;
    queue.queue(request, {SendQueue::Then::transfer, handle}, at == memory.size());
  }
  return {};
}

bool TargetTasks::request_over(TaskHandle handle, size_t count) {
  Task& task = get(handle);
  VJBOD_CHECK(task.requests >= count);
  task.requests -= count;
  return task.requests == 0;
}

void TargetTasks::set_over(Task& task) {
  task.over = true;
  task.region.reset();
}

void TargetTasks::clear_regions() {
  for (uint32_t slot = 0; Task* task = tasks_.at_slot(slot); ++slot) task->region.reset();
}

}  // namespace vjbod::transport
