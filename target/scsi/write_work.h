// SPDX-License-Identifier: Apache-2.0
// WRITE: from the initiator through the task's buffer to the backstore, piece by piece, and to
// stable storage before the answer when FUA is set.
#pragma once

#include <cstdint>

#include "common/scsi/cdb.h"
#include "target/scsi/work.h"

namespace vjbod::scsi {

class WriteWork final : public Work {
 public:
  WriteWork(Execution& execution, const Write& command);

  void start() override;
  void on_data_moved() override;
  void on_op_done(std::error_code error) override;

 private:
  void next_piece();

  const uint64_t start_bytes_;
  const uint64_t total_bytes_;
  uint64_t done_bytes_ = 0;
  size_t piece_bytes_ = 0;
  const bool native_fua_;
  bool flush_at_end_;
};

}  // namespace vjbod::scsi
