// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/verify_work.h"

#include <algorithm>
#include <cstring>

#include "target/scsi/execution.h"

namespace vjbod::scsi {

VerifyWork::VerifyWork(Execution& execution, const Verify& command)
    : Work(execution),
      against_(static_cast<Against>(command.byte_check)),
      start_bytes_(execution.unit().bytes(command.lba)),
      total_bytes_(execution.unit().bytes(command.blocks)),
      data_bytes_(against_ == Against::nothing || command.blocks == 0 ? 0
                  : against_ == Against::data                         ? total_bytes_
                                              : execution.unit().block_bytes) {}

void VerifyWork::start() {
  if (execution_.expected_bytes(DataDirection::write) < data_bytes_) {
    return execution_.finish(too_little_data(data_bytes_));
  }
  if (total_bytes_ == 0) return execution_.finish(good(0));
  execution_.want_scratch();
}

void VerifyWork::on_scratch(Bytes memory) {
  if (memory.empty()) return execution_.finish(with_status(Status::busy));
  medium_ = memory;
  next_piece();
}

void VerifyWork::next_piece() {
  piece_bytes_ =
      static_cast<size_t>(std::min<uint64_t>(medium_.size(), total_bytes_ - done_bytes_));
  if (against_ == Against::data) {
    const size_t block_bytes = execution_.unit().block_bytes;
    const size_t room = execution_.task().buffer.size() / block_bytes * block_bytes;
    VJBOD_CHECK(room != 0, "a task's buffer holds no block");
    piece_bytes_ = std::min(piece_bytes_, room);
    return execution_.get(done_bytes_, piece_bytes_);
  }
  if (against_ == Against::one_block && done_bytes_ == 0) {
    return execution_.get(0, static_cast<size_t>(data_bytes_));
  }
  read_piece();
}

void VerifyWork::on_data_moved() {
  read_piece();
}

void VerifyWork::read_piece() {
  execution_.submit(backstore::OpKind::read, start_bytes_ + done_bytes_,
                    medium_.first(piece_bytes_));
}

void VerifyWork::on_op_done(std::error_code error) {
  if (error) {
    return execution_.finish(backstore_failure(backstore::OpKind::read, error, data_bytes_));
  }
  if (!matches()) {
    return execution_.finish(check_condition(
        {.key = SenseKey::miscompare, .additional = asc::miscompare_during_verify}, data_bytes_));
  }
  done_bytes_ += piece_bytes_;
  if (done_bytes_ == total_bytes_) return execution_.finish(good(data_bytes_));
  next_piece();
}

bool VerifyWork::matches() const {
  const std::byte* data = execution_.task().buffer.data();
  switch (against_) {
    case Against::nothing: return true;
    case Against::data: return std::memcmp(medium_.data(), data, piece_bytes_) == 0;
    case Against::one_block: break;
  }
  const size_t block_bytes = execution_.unit().block_bytes;
  for (size_t at = 0; at < piece_bytes_; at += block_bytes) {
    if (std::memcmp(medium_.data() + at, data, block_bytes) != 0) return false;
  }
  return true;
}

}  // namespace vjbod::scsi
