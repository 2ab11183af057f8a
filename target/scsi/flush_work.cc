// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/flush_work.h"

#include "target/scsi/execution.h"

namespace vjbod::scsi {

void FlushWork::start() {
  execution_.flush();
}

void FlushWork::on_op_done(std::error_code error) {
  execution_.finish(error ? backstore_failure(backstore::OpKind::flush, error, 0) : good(0));
}

}  // namespace vjbod::scsi
