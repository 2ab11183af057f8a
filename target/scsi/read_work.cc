// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/read_work.h"

#include <algorithm>
#include <cstring>

#include "target/scsi/execution.h"

namespace vjbod::scsi {

ReadWork::ReadWork(Execution& execution, const Read& command)
    : Work(execution),
      start_bytes_(execution.unit().bytes(command.lba)),
      total_bytes_(execution.unit().bytes(command.blocks)),
      wanted_bytes_(std::min(total_bytes_, execution.expected_bytes(DataDirection::read))),
      flush_first_(command.force_unit_access && execution.unit().volatile_cache) {}

void ReadWork::start() {
  if (wanted_bytes_ == 0) return execution_.finish(good(total_bytes_));
  if (flush_first_) return execution_.flush();
  next_piece();
}

void ReadWork::next_piece() {
  const Bytes buffer = execution_.task().buffer;
  const size_t block_bytes = execution_.unit().block_bytes;
  const size_t whole_blocks = buffer.size() / block_bytes * block_bytes;
  const uint64_t left = wanted_bytes_ - done_bytes_;
  const uint64_t left_in_blocks = (left + block_bytes - 1) / block_bytes * block_bytes;
  const uint64_t from = start_bytes_ + done_bytes_;
  if (whole_blocks >= left_in_blocks) {
    piece_bytes_ = static_cast<size_t>(left);
    return execution_.submit(backstore::OpKind::read, from, buffer.first(left_in_blocks));
  }
  if (whole_blocks != 0 && left >= block_bytes) {
    piece_bytes_ =
        static_cast<size_t>(std::min<uint64_t>(whole_blocks, left / block_bytes * block_bytes));
    return execution_.submit(backstore::OpKind::read, from, buffer.first(piece_bytes_));
  }
  piece_bytes_ = static_cast<size_t>(left);
  execution_.want_scratch();
}

void ReadWork::on_scratch(Bytes memory) {
  if (memory.empty()) return execution_.finish(with_status(Status::busy));
  scratch_ = memory;
  execution_.submit(backstore::OpKind::read, start_bytes_ + done_bytes_,
                    memory.first(execution_.unit().block_bytes));
}

void ReadWork::on_op_done(std::error_code error) {
  if (error) return execution_.finish(backstore_failure(execution_.op_kind(), error, done_bytes_));
  if (flush_first_) {
    flush_first_ = false;
    return next_piece();
  }
  if (!scratch_.empty()) {
    std::memcpy(execution_.task().buffer.data(), scratch_.data(), piece_bytes_);
  }
  if (done_bytes_ + piece_bytes_ == wanted_bytes_) {
    return execution_.put_and_finish(done_bytes_, piece_bytes_, good(total_bytes_));
  }
  execution_.put(done_bytes_, piece_bytes_);
}

void ReadWork::on_data_moved() {
  done_bytes_ += piece_bytes_;
  next_piece();
}

}  // namespace vjbod::scsi
