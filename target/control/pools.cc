// SPDX-License-Identifier: Apache-2.0
#include "target/control/pools.h"

#include "target/control/errors.h"

namespace vjbod::target {

Pools::Pools(std::vector<PoolConfig> configs) {
  for (PoolConfig& config : configs) pools_.push_back({std::move(config), nullptr});
}

Result<LunPool*> Pools::find(const std::string& name) {
  std::string known;
  for (Pool& pool : pools_) {
    known += known.empty() ? "" : ", ";
    known += pool.config.name;
    if (pool.config.name != name) continue;
    if (pool.opened == nullptr) {
      Result<std::unique_ptr<LunPool>> opened = open_lun_pool(pool.config);
      if (!opened) {
        Error error = control_error(opened.error());
        error.text = fmt::format("pool {}: {}", name, error.text);
        return fail(std::move(error));
      }
      pool.opened = std::move(*opened);
    }
    return pool.opened.get();
  }
  return fail(rpc::Errc::not_found, "there is no pool {}; the pools of this box are: {}", name,
              known.empty() ? "none" : known);
}

std::vector<PoolStatus> Pools::list() {
  std::vector<PoolStatus> result;
  for (const Pool& pool : pools_) {
    PoolStatus& status = result.emplace_back();
    status.config = pool.config;
    Result<LunPool*> opened = find(pool.config.name);
    if (!opened) {
      status.error = opened.error().text;
      continue;
    }
    Result<LunPool::Space> space = (*opened)->space();
    if (space)
      status.space = *space;
    else
      status.error = space.error().text;
  }
  return result;
}

}  // namespace vjbod::target
