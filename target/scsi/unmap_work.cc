// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/unmap_work.h"

#include <algorithm>

#include "target/scsi/execution.h"
#include "target/scsi/limits.h"

namespace vjbod::scsi {

void UnmapWork::start() {
  if (list_bytes_ == 0) return execution_.finish(good(0));
  if (list_bytes_ < unmap_header_bytes) {
    return execution_.finish(illegal_request(asc::parameter_list_length_error));
  }
  if (execution_.expected_bytes(DataDirection::write) < list_bytes_) {
    return execution_.finish(too_little_data(list_bytes_));
  }
  execution_.get(0, list_bytes_);
}

void UnmapWork::on_data_moved() {
  auto list = UnmapList::parse(execution_.task().buffer.first(list_bytes_));
  if (!list) return execution_.finish(invalid_field_in_parameter_list(0));
  if (list->size() > unmap_descriptors_max) {
    return execution_.finish(invalid_field_in_parameter_list(2));
  }
  uint64_t total_blocks = 0;  // at most 2^32 for each of the few ranges: no overflow
  for (size_t i = 0; i < list->size(); ++i) {
    const UnmapRange range = (*list)[i];
    if (!execution_.unit().holds(range.lba, range.blocks)) {
      return execution_.finish(illegal_request(asc::lba_out_of_range, list_bytes_));
    }
    total_blocks += range.blocks;
    if (total_blocks > unmap_blocks_max) {
      const size_t field = unmap_header_bytes + i * unmap_descriptor_bytes + 8;
      return execution_.finish(invalid_field_in_parameter_list(static_cast<uint16_t>(field)));
    }
  }
  list_ = *list;
  next_piece();
}

void UnmapWork::next_piece() {
  while (range_ < list_.size() && done_blocks_ == list_[range_].blocks) {
    ++range_;
    done_blocks_ = 0;
  }
  if (range_ == list_.size()) return execution_.finish(good(list_bytes_));
  const UnmapRange range = list_[range_];
  const MappedUnit& unit = execution_.unit();
  piece_blocks_ = std::min(range.blocks - done_blocks_, zeroing_piece_bytes >> unit.block_shift);
  execution_.submit_range(backstore::OpKind::unmap, unit.bytes(range.lba + done_blocks_),
                          unit.bytes(piece_blocks_), true);
}

void UnmapWork::on_op_done(std::error_code error) {
  if (error) {
    return execution_.finish(backstore_failure(backstore::OpKind::unmap, error, list_bytes_));
  }
  done_blocks_ += piece_blocks_;
  next_piece();
}

}  // namespace vjbod::scsi
