// SPDX-License-Identifier: Apache-2.0
// An initiator's tasks and what the target may reach of their memory: exactly the part of the
// write that does not go with the command, for reading, or the read, for writing; from the command
// until its response. With memory windows, a window of the task's slot is bound to that part and
// invalidated again, by the target with its response or by us; without, the part is registered for
// this one command.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/result.h"
#include "common/transport/data_mover.h"
#include "common/transport/iser/iser_wire.h"
#include "common/transport/iser/region_cache.h"
#include "common/transport/iser/verbs_api.h"
#include "common/transport/tcp/slot_table.h"
#include "common/transport/tcp/tag_map.h"

namespace vjbod::transport {

class InitiatorTasks {
 public:
  static constexpr size_t tasks_max = SlotTable<int>::slots_max;

  struct Task {
    uint32_t itt = 0;
    bool reads = false;
    uint64_t bytes = 0;
    std::optional<uint32_t> key{};  // the target can reach the memory by it
    bool bound = false;             // key is a window's
    bool answered = false;
    uint64_t command_number = 0;             // in the send queue; 0: not there yet
    std::unique_ptr<rdma::Region> region{};  // of memory that is in no slab
  };
  struct Begun {
    TaskHandle task = no_task;
    IserHeader header;
    std::optional<rdma::SendRequest> bind{};  // goes before the command
  };

  explicit InitiatorTasks(RegionCache& cache) : cache_(cache) {}

  // Aborts when the ITT is in use or there are too many. The error is one of registration.
  Result<Begun> begin(uint32_t itt, ConstBytes write, Bytes read, size_t immediate_bytes);
  Task* find(TaskHandle handle) { return tasks_.find(handle); }
  TaskHandle handle_of(uint32_t itt) const { return by_itt_.find(itt); }

  // The target has invalidated this key with the response of the task. False: it is not the
  // task's, or nothing was agreed on.
  bool was_invalidated(TaskHandle handle, uint32_t key);
  // Not by the target: by this request, whose completion is told with invalidated().
  std::optional<rdma::SendRequest> invalidate(TaskHandle handle);
  void invalidated(TaskHandle handle);
  // Nothing can reach the task's memory any more; it is removed.
  Task finish(TaskHandle handle);

  // The queue is in error: windows are taken from everybody, then (once it is destroyed) regions.
  void clear_windows() { windows_.clear(); }
  void clear_regions();

 private:
  struct SlotWindow {
    std::unique_ptr<rdma::Window> window;
    uint32_t last_key = 0;
  };
  Status grant(Task& task, TaskHandle handle, ConstBytes memory, Begun& begun);

  RegionCache& cache_;
  SlotTable<Task> tasks_;
  TagMap by_itt_;
  std::vector<SlotWindow> windows_;  // by slot
};

}  // namespace vjbod::transport
