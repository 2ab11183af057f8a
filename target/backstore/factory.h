// SPDX-License-Identifier: Apache-2.0
// Makes a backstore, with its filters around it, from its description. Any thread; opening does
// system calls that may take long, so not on a shard.
#pragma once

#include "target/backstore/config.h"

namespace vjbod::backstore {

// Whether the description makes sense by itself; nothing is opened or looked at on disk. The error
// names the field.
Status validate_config(const BackstoreConfig& config);

// Validates, then opens. On an error nothing stays open or locked.
Result<std::shared_ptr<Backstore>> open_backstore(const BackstoreConfig& config);

}  // namespace vjbod::backstore
