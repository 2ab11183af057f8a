// SPDX-License-Identifier: Apache-2.0
// READ: from the backstore through the task's buffer to the initiator, piece by piece. Most are one
// piece.
#pragma once

#include <cstdint>

#include "common/scsi/cdb.h"
#include "target/scsi/work.h"

namespace vjbod::scsi {

class ReadWork final : public Work {
 public:
  ReadWork(Execution& execution, const Read& command);

  void start() override;
  void on_op_done(std::error_code error) override;
  void on_data_moved() override;
  void on_scratch(Bytes memory) override;

 private:
  void next_piece();

  const uint64_t start_bytes_;   // on the unit
  const uint64_t total_bytes_;   // what the CDB asks for
  const uint64_t wanted_bytes_;  // what the initiator has room for
  uint64_t done_bytes_ = 0;
  size_t piece_bytes_ = 0;
  // FUA: what is in a volatile cache goes to the medium before it is read from there
  // (SBC-3 table 59).
  bool flush_first_;
  Bytes scratch_;  // for a last piece inside a block
};

}  // namespace vjbod::scsi
