// SPDX-License-Identifier: Apache-2.0
#include "target/control/cache_id.h"

namespace vjbod::target {

std::string cache_id(const backstore::BackstoreCapabilities& capabilities,
                     const std::string& boot_id, const std::string& instance_id) {
  return capabilities.outlives_process && !boot_id.empty() ? boot_id : instance_id;
}

}  // namespace vjbod::target
