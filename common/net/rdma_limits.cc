// SPDX-License-Identifier: Apache-2.0
#include "common/net/rdma_limits.h"

#include <memory>

#include <infiniband/verbs.h>

namespace vjbod::net {

std::optional<RdmaLimits> read_rdma_limits(const std::string& device) {
  int count = 0;
  const std::unique_ptr<ibv_device*, void (*)(ibv_device**)> devices(ibv_get_device_list(&count),
                                                                     ibv_free_device_list);
  for (int i = 0; devices != nullptr && i < count; ++i) {
    ibv_device* found = devices.get()[i];
    if (device != ibv_get_device_name(found)) continue;
    const std::unique_ptr<ibv_context, int (*)(ibv_context*)> opened(ibv_open_device(found),
                                                                     ibv_close_device);
    ibv_device_attr facts{};
    if (opened == nullptr || ibv_query_device(opened.get(), &facts) != 0) return std::nullopt;
    RdmaLimits limits;
    limits.regions_max = facts.max_mr > 0 ? static_cast<uint64_t>(facts.max_mr) : 0;
    limits.region_bytes_max = facts.max_mr_size;
    const unsigned type_2 = IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    limits.memory_windows = (facts.device_cap_flags & type_2) != 0;
    return limits;
  }
  return std::nullopt;
}

}  // namespace vjbod::net
