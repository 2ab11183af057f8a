// SPDX-License-Identifier: Apache-2.0
// WRITE SAME: one block to many places. Zeros become a backstore operation of their own, which may
// give the space back if the initiator said UNMAP; another pattern is written out.
#pragma once

#include <cstdint>

#include "common/scsi/cdb.h"
#include "target/scsi/work.h"

namespace vjbod::scsi {

class WriteSameWork final : public Work {
 public:
  WriteSameWork(Execution& execution, const WriteSame& command);

  void start() override;
  void on_data_moved() override;
  void on_scratch(Bytes memory) override;
  void on_op_done(std::error_code error) override;

 private:
  void next_piece();

  const uint64_t start_bytes_;
  const uint64_t total_bytes_;
  const size_t data_bytes_;  // one block, or none
  const bool may_unmap_;
  uint64_t done_bytes_ = 0;
  uint64_t piece_bytes_ = 0;
  Bytes pattern_;  // many copies of the block; empty for zeros
};

}  // namespace vjbod::scsi
