// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/work.h"

#include "common/base/check.h"

namespace vjbod::scsi {

void Work::on_data_moved() {
  VJBOD_CHECK(false, "data moved for a command that moves none");
}

void Work::on_op_done(std::error_code) {
  VJBOD_CHECK(false, "a backstore operation ended for a command that has none");
}

void Work::on_scratch(Bytes) {
  VJBOD_CHECK(false, "scratch memory for a command that wants none");
}

}  // namespace vjbod::scsi
