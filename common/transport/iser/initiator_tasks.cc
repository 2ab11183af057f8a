// SPDX-License-Identifier: Apache-2.0
#include "common/transport/iser/initiator_tasks.h"

#include <utility>

#include "common/base/check.h"

namespace vjbod::transport {

using rdma::Access;
using rdma::SendRequest;

Result<InitiatorTasks::Begun> InitiatorTasks::begin(uint32_t itt, ConstBytes write, Bytes read,
                                                    size_t immediate_bytes) {
  VJBOD_CHECK(write.empty() || read.empty(), "a task either reads or writes");
  VJBOD_CHECK(immediate_bytes <= write.size());
  Begun begun;
  begun.task = tasks_.insert();
  VJBOD_CHECK(begun.task != no_task, "more than {} tasks at once", tasks_max);
  VJBOD_CHECK(by_itt_.insert(itt, begun.task), "ITT {:#x} is in use", itt);
  Task& task = *tasks_.find(begun.task);
  task = {};
  task.itt = itt;
  task.reads = !read.empty();
  task.bytes = write.size() + read.size();
  const ConstBytes reachable = task.reads ? ConstBytes(read) : write.subspan(immediate_bytes);
  if (reachable.empty()) return begun;
  if (Status granted = grant(task, begun.task, reachable, begun); !granted) {
    by_itt_.erase(itt);
    tasks_.erase(begun.task);
    return fail(std::move(granted).error());
  }
  const RemoteBuffer lent{*task.key, reinterpret_cast<uint64_t>(reachable.data())};
  (task.reads ? begun.header.read : begun.header.write) = lent;
  return begun;
}

Status InitiatorTasks::grant(Task& task, TaskHandle handle, ConstBytes memory, Begun& begun) {
  rdma::Domain& domain = cache_.domain();
  const Access access = task.reads ? Access::remote_write : Access::remote_read;
  if (!domain.device().memory_windows) {
    auto region = domain.register_memory(memory, access);
    if (!region) return fail(std::move(region).error());
    task.region = std::move(*region);
    task.key = task.region->remote_key();
    return {};
  }
  const auto found = cache_.find(memory);
  if (!found) return fail(found.error());
  const rdma::Region* region = *found;
  if (region == nullptr) {
    auto own = domain.register_memory(memory, Access::window);
    if (!own) return fail(std::move(own).error());
    task.region = std::move(*own);
    region = task.region.get();
  }
  const uint32_t slot = SlotTable<Task>::slot_of(handle);
  if (slot >= windows_.size()) windows_.resize(slot + 1);
  SlotWindow& own = windows_[slot];
  if (own.window == nullptr) {
    auto window = domain.make_window();
    if (!window) return fail(std::move(window).error());
    own.window = std::move(*window);
    own.last_key = own.window->first_key();
  }
  own.last_key = rdma::next_window_key(own.last_key);
  task.key = own.last_key;
  task.bound = true;
  SendRequest bind;
  bind.kind = SendRequest::Kind::bind;
  bind.memory = memory;
  bind.remote_key = own.last_key;
  bind.window = own.window.get();
  bind.region = region;
  bind.access = access;
  begun.bind = bind;
  return {};
}

bool InitiatorTasks::was_invalidated(TaskHandle handle, uint32_t key) {
  Task& task = *tasks_.find(handle);
  if (!task.bound || task.key != key) return false;
  invalidated(handle);
  return true;
}

std::optional<SendRequest> InitiatorTasks::invalidate(TaskHandle handle) {
  const Task& task = *tasks_.find(handle);
  if (!task.bound) return std::nullopt;
  SendRequest request;
  request.kind = SendRequest::Kind::invalidate;
  request.remote_key = *task.key;
  request.window = windows_[SlotTable<Task>::slot_of(handle)].window.get();
  return request;
}

void InitiatorTasks::invalidated(TaskHandle handle) {
  Task* task = tasks_.find(handle);
  VJBOD_CHECK(task != nullptr && task->bound, "a window was invalidated that was not bound");
  task->bound = false;
  task->key.reset();
}

InitiatorTasks::Task InitiatorTasks::finish(TaskHandle handle) {
  Task* found = tasks_.find(handle);
  VJBOD_CHECK(found != nullptr && !found->bound, "the target can still reach the task's memory");
  found->region.reset();
  Task finished = std::move(*found);
  by_itt_.erase(finished.itt);
  tasks_.erase(handle);
  return finished;
}

void InitiatorTasks::clear_regions() {
  for (uint32_t slot = 0; Task* task = tasks_.at_slot(slot); ++slot) task->region.reset();
}

}  // namespace vjbod::transport
