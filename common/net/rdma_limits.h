// SPDX-License-Identifier: Apache-2.0
// What an RDMA device has, by its own word: sysfs does not tell these. Any thread; opens the device
// for a moment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vjbod::net {

struct RdmaLimits {
  uint64_t regions_max = 0;       // memory regions
  uint64_t region_bytes_max = 0;  // of one
  bool memory_windows = false;    // of type 2: given and taken back by requests in the queue
};

// Nothing when there is no such device, or it may not be opened.
std::optional<RdmaLimits> read_rdma_limits(const std::string& device);

}  // namespace vjbod::net
