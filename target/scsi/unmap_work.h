// SPDX-License-Identifier: Apache-2.0
// UNMAP: the list of ranges comes into the task's buffer, is checked as a whole, and is then worked
// off from there, range by range (SBC-3 5.28).
#pragma once

#include <cstdint>

#include "common/scsi/cdb.h"
#include "common/scsi/unmap_list.h"
#include "target/scsi/work.h"

namespace vjbod::scsi {

class UnmapWork final : public Work {
 public:
  UnmapWork(Execution& execution, const Unmap& command)
      : Work(execution), list_bytes_(command.parameter_list_length) {}

  void start() override;
  void on_data_moved() override;
  void on_op_done(std::error_code error) override;

 private:
  void next_piece();

  const size_t list_bytes_;
  UnmapList list_ = UnmapList::none();
  size_t range_ = 0;          // index in the list
  uint64_t done_blocks_ = 0;  // of this range
  uint64_t piece_blocks_ = 0;
};

}  // namespace vjbod::scsi
