// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/write_work.h"

#include <algorithm>

#include "target/scsi/execution.h"

namespace vjbod::scsi {

WriteWork::WriteWork(Execution& execution, const Write& command)
    : Work(execution),
      start_bytes_(execution.unit().bytes(command.lba)),
      total_bytes_(execution.unit().bytes(command.blocks)),
      native_fua_(command.force_unit_access && execution.unit().native_fua),
      flush_at_end_(command.force_unit_access && !execution.unit().native_fua &&
                    execution.unit().volatile_cache) {}

void WriteWork::start() {
  if (execution_.expected_bytes(DataDirection::write) < total_bytes_) {
    return execution_.finish(too_little_data(total_bytes_));
  }
  if (total_bytes_ == 0) return execution_.finish(good(0));
  next_piece();
}

void WriteWork::next_piece() {
  const size_t block_bytes = execution_.unit().block_bytes;
  const size_t room = execution_.task().buffer.size() / block_bytes * block_bytes;
  VJBOD_CHECK(room != 0, "a task's buffer holds no block");
  piece_bytes_ = static_cast<size_t>(std::min<uint64_t>(room, total_bytes_ - done_bytes_));
  execution_.get(done_bytes_, piece_bytes_);
}

void WriteWork::on_data_moved() {
  execution_.submit(backstore::OpKind::write, start_bytes_ + done_bytes_,
                    execution_.task().buffer.first(piece_bytes_), {.fua = native_fua_});
}

void WriteWork::on_op_done(std::error_code error) {
  if (error) return execution_.finish(backstore_failure(execution_.op_kind(), error, done_bytes_));
  if (done_bytes_ != total_bytes_) {
    done_bytes_ += piece_bytes_;
    if (done_bytes_ != total_bytes_) return next_piece();
    if (flush_at_end_) return execution_.flush();
  }
  execution_.finish(good(total_bytes_));
}

}  // namespace vjbod::scsi
