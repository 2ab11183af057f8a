// SPDX-License-Identifier: Apache-2.0
// A target's tasks: the buffers that the initiator lends for each, and the one transfer that each
// may have under way, which is a row of RDMA Reads or Writes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "common/base/result.h"
#include "common/iscsi/pdu.h"
#include "common/transport/data_mover.h"
#include "common/transport/iser/iser_wire.h"
#include "common/transport/iser/region_cache.h"
#include "common/transport/iser/send_queue.h"
#include "common/transport/tcp/slot_table.h"
#include "common/transport/tcp/tag_map.h"

namespace vjbod::transport {

class TargetTasks {
 public:
  static constexpr size_t tasks_max = SlotTable<int>::slots_max;

  struct Task {
    uint32_t itt = 0;
    IserHeader lent;
    uint32_t bytes = 0;      // Expected Data Transfer Length
    uint32_t immediate = 0;  // came with the command; `lent.write` begins behind it
    bool moving = false;
    bool gets = false;                       // moving: by reads
    bool over = false;                       // moving, and on_transfer_done is all that is missing
    size_t requests = 0;                     // of the transfer, in the send queue
    std::unique_ptr<rdma::Region> region{};  // of memory that is in no slab
  };

  explicit TargetTasks(RegionCache& cache) : cache_(cache) {}

  // no_task when there are too many.
  TaskHandle begin(const iscsi::ScsiCommand& command, const IserHeader& header,
                   size_t immediate_bytes);
  Task* find(TaskHandle handle) { return tasks_.find(handle); }
  Task& get(TaskHandle handle);  // aborts if there is no such task
  void end(TaskHandle handle);
  // The peer's key that the response of this task may take back: the one it lent, if it was one,
  // and nothing moves by it any more.
  std::optional<uint32_t> key_to_invalidate(uint32_t itt);

  // Queue the requests. The error ends the connection: the initiator lent no buffer, or not enough
  // of it, or our own memory cannot be registered.
  Status start_put(TaskHandle handle, uint64_t offset, ConstBytes data, SendQueue& queue);
  Status start_get(TaskHandle handle, uint64_t offset, Bytes into, SendQueue& queue);
  // One request of the transfer is done, or was dropped. True: it was the last.
  bool request_over(TaskHandle handle, size_t count = 1);
  void set_over(Task& task);

  void clear_regions();
  size_t size() const { return tasks_.size(); }

 private:
  Status start(Task& task, TaskHandle handle, rdma::SendRequest::Kind kind, ConstBytes memory,
               const RemoteBuffer& from_here, SendQueue& queue);

  RegionCache& cache_;
  SlotTable<Task> tasks_;
  TagMap by_itt_;
};

}  // namespace vjbod::transport
