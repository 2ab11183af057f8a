// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/mapped_unit.h"

#include <bit>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"

namespace vjbod::scsi {

MappedUnit::MappedUnit(uint16_t lun_number, std::shared_ptr<LogicalUnit> logical_unit,
                       bool read_only_here, std::unique_ptr<backstore::BackstoreQueue> shard_queue)
    : number(lun_number),
      unit(std::move(logical_unit)),
      queue(std::move(shard_queue)),
      read_only(read_only_here || unit->read_only()) {
  const backstore::BackstoreCapabilities capabilities = unit->backstore().capabilities();
  volatile_cache = capabilities.volatile_cache;
  native_fua = capabilities.native_fua;
  can_unmap = capabilities.unmap;
  block_bytes = unit->backstore().geometry().block_bytes;
  VJBOD_CHECK(std::has_single_bit(block_bytes), "a backstore with blocks of {} bytes", block_bytes);
  block_shift = static_cast<unsigned>(std::countr_zero(block_bytes));
  refresh_geometry();
}

bool MappedUnit::refresh_geometry() {
  const uint64_t now = unit->backstore().geometry().size_bytes >> block_shift;
  return std::exchange(blocks, now) != now;
}

void MappedUnit::note_failure(const backstore::Op& op, std::error_code error) {
  if (!std::has_single_bit(++failures)) return;
  PrefixLogger(fmt::format("lun {}", unit->serial()))
      .error("{} of {} bytes at {} failed: {} ({} failed operations so far in this session)",
             backstore::name_of(op.kind), op.length_bytes, op.offset_bytes, error.message(),
             failures);
}

}  // namespace vjbod::scsi
