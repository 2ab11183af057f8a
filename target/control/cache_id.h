// SPDX-License-Identifier: Apache-2.0
// Which cache holds a LUN's writes that are acknowledged and not flushed. Hosts compare it at each
// login: when it has changed, they know that such writes may be lost. Pure.
#pragma once

#include <string>

#include "target/backstore/backstore.h"

namespace vjbod::target {

// `boot_id`: kernel_boot_id(). `instance_id`: of this run of the daemon. What the kernel has got
// outlives this process, and is lost with the kernel. What only the process has is lost with it; so
// is, to be on the safe side, what we know no kernel of.
std::string cache_id(const backstore::BackstoreCapabilities& capabilities,
                     const std::string& boot_id, const std::string& instance_id);

}  // namespace vjbod::target
