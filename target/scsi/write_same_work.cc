// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/write_same_work.h"

#include <algorithm>
#include <cstring>

#include "target/scsi/execution.h"
#include "target/scsi/limits.h"

namespace vjbod::scsi {

namespace {

bool all_zero(ConstBytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

WriteSameWork::WriteSameWork(Execution& execution, const WriteSame& command)
    : Work(execution),
      start_bytes_(execution.unit().bytes(command.lba)),
      total_bytes_(execution.unit().bytes(command.blocks)),
      data_bytes_(command.no_data_out ? 0 : execution.unit().block_bytes),
      may_unmap_(command.unmap) {}

void WriteSameWork::start() {
  // More than the one block is as wrong as less: what would the rest be for?
  if (data_bytes_ != 0 && execution_.expected_bytes(DataDirection::write) != data_bytes_) {
    return execution_.finish(too_little_data(data_bytes_));
  }
  if (data_bytes_ == 0) return next_piece();
  execution_.get(0, data_bytes_);
}

void WriteSameWork::on_data_moved() {
  if (all_zero(execution_.task().buffer.first(data_bytes_))) return next_piece();
  execution_.want_scratch();
}

void WriteSameWork::on_scratch(Bytes memory) {
  if (memory.empty()) return execution_.finish(with_status(Status::busy));
  pattern_ = memory.first(static_cast<size_t>(
      std::min<uint64_t>(memory.size() / data_bytes_ * data_bytes_, total_bytes_)));
  const std::byte* block = execution_.task().buffer.data();
  for (size_t at = 0; at < pattern_.size(); at += data_bytes_) {
    std::memcpy(pattern_.data() + at, block, data_bytes_);
  }
  next_piece();
}

void WriteSameWork::next_piece() {
  const uint64_t left = total_bytes_ - done_bytes_;
  const uint64_t at = start_bytes_ + done_bytes_;
  if (pattern_.empty()) {
    piece_bytes_ = std::min(left, zeroing_piece_bytes);
    return execution_.submit_range(backstore::OpKind::write_zeroes, at, piece_bytes_, may_unmap_);
  }
  piece_bytes_ = std::min<uint64_t>(left, pattern_.size());
  execution_.submit(backstore::OpKind::write, at, pattern_.first(piece_bytes_));
}

void WriteSameWork::on_op_done(std::error_code error) {
  if (error) return execution_.finish(backstore_failure(execution_.op_kind(), error, data_bytes_));
  done_bytes_ += piece_bytes_;
  if (done_bytes_ == total_bytes_) return execution_.finish(good(data_bytes_));
  next_piece();
}

}  // namespace vjbod::scsi
