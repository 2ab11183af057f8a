// SPDX-License-Identifier: Apache-2.0
// VERIFY: reads the blocks, and compares them with data from the initiator when BYTCHK asks for it
// (SBC-3 5.29).
#pragma once

#include <cstdint>

#include "common/scsi/cdb.h"
#include "target/scsi/work.h"

namespace vjbod::scsi {

class VerifyWork final : public Work {
 public:
  VerifyWork(Execution& execution, const Verify& command);

  void start() override;
  void on_scratch(Bytes memory) override;
  void on_data_moved() override;
  void on_op_done(std::error_code error) override;

 private:
  enum class Against : uint8_t { nothing = 0, data = 1, one_block = 3 };  // BYTCHK

  void next_piece();
  void read_piece();
  bool matches() const;

  const Against against_;
  const uint64_t start_bytes_;
  const uint64_t total_bytes_;  // on the medium
  const uint64_t data_bytes_;   // from the initiator
  uint64_t done_bytes_ = 0;
  size_t piece_bytes_ = 0;
  Bytes medium_;
};

}  // namespace vjbod::scsi
