// SPDX-License-Identifier: Apache-2.0
// One LUN of one nexus: the logical unit, this shard's queue of its backstore, a snapshot of what
// the data path asks for on every command, and what belongs to this nexus alone (task set, unit
// attentions). Owned by the LUN map, or by the device server while its last tasks end; on the
// nexus's thread.
#pragma once

#include <cstdint>
#include <memory>

#include "target/backstore/backstore.h"
#include "target/scsi/logical_unit.h"
#include "target/scsi/task_set.h"
#include "target/scsi/unit_attention.h"

namespace vjbod::scsi {

class MappedUnit {
 public:
  MappedUnit(uint16_t number, std::shared_ptr<LogicalUnit> unit, bool read_only,
             std::unique_ptr<backstore::BackstoreQueue> queue);

  // Reads the size anew; true when it has changed.
  bool refresh_geometry();

  // Whether [lba, lba + count) is on the unit.
  bool holds(uint64_t lba, uint64_t count) const { return lba <= blocks && count <= blocks - lba; }
  // Logs the first failure, and then less and less often: a dying disk must not fill the log.
  void note_failure(const backstore::Op& op, std::error_code error);
  uint64_t bytes(uint64_t count) const { return count << block_shift; }

  const uint16_t number;
  const std::shared_ptr<LogicalUnit> unit;
  const std::unique_ptr<backstore::BackstoreQueue> queue;
  bool read_only;

  // The snapshot.
  uint64_t blocks = 0;
  uint32_t block_bytes = 0;
  unsigned block_shift = 0;
  bool volatile_cache = false;
  bool native_fua = false;
  bool can_unmap = false;

  UnitAttentions attentions;
  TaskSet tasks;
  uint64_t failures = 0;        // of backstore operations
  bool starting_tasks = false;  // the device server is in its loop over tasks.next()
};

}  // namespace vjbod::scsi
