// SPDX-License-Identifier: Apache-2.0
// SYNCHRONIZE CACHE, and START STOP UNIT that stops: everything that was acknowledged goes to
// stable storage.
#pragma once

#include "target/scsi/work.h"

namespace vjbod::scsi {

class FlushWork final : public Work {
 public:
  explicit FlushWork(Execution& execution) : Work(execution) {}

  void start() override;
  void on_op_done(std::error_code error) override;
};

}  // namespace vjbod::scsi
