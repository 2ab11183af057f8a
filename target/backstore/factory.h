// SPDX-License-Identifier: Apache-2.0
// Makes a backstore, with its filters around it, from its description. Any thread; opening does
// system calls that may take long, so not on a shard.
#pragma once

#include "target/backstore/config.h"
#include "target/backstore/delay_backstore.h"
#include "target/backstore/error_backstore.h"
#include "target/backstore/trace_backstore.h"

namespace vjbod::backstore {

// Whether the description makes sense by itself; nothing is opened or looked at on disk. The error
// names the field.
Status validate_config(const BackstoreConfig& config);

// Validates, then opens. On an error nothing stays open or locked.
Result<std::shared_ptr<Backstore>> open_backstore(const BackstoreConfig& config);

// The controls of the filters around a backstore; null for a filter that is not there. They may be
// used from any thread while I/O runs, and may outlive the backstore.
struct FilterControls {
  std::shared_ptr<DelayControl> delay;
  std::shared_ptr<ErrorControl> error;
  std::shared_ptr<TraceControl> trace;
};
FilterControls filter_controls(const Backstore& backstore);

}  // namespace vjbod::backstore
