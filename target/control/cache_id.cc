// SPDX-License-Identifier: Apache-2.0
#include "target/control/cache_id.h"

#include <fstream>

#include "target/control/target_state.h"

namespace vjbod::target {

std::string kernel_boot_id(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return parse_uuid(text) ? text : std::string();
}

std::string cache_id(const backstore::BackstoreCapabilities& capabilities,
                     const std::string& boot_id, const std::string& instance_id) {
  return capabilities.outlives_process && !boot_id.empty() ? boot_id : instance_id;
}

}  // namespace vjbod::target
