// SPDX-License-Identifier: Apache-2.0
// The pools of the configuration. One that cannot be opened (a disk that is not mounted) does not
// stop the others; it is tried again when it is asked for. On the control reactor; waits for the
// disk.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "target/control/config.h"
#include "target/control/lun_pool.h"

namespace vjbod::target {

struct PoolStatus {
  PoolConfig config;
  LunPool::Space space;  // zeros when there is an error
  std::string error;     // empty: in order
};

class Pools {
 public:
  explicit Pools(std::vector<PoolConfig> configs);

  // The pool, opened if need be. not_found when the configuration has none of this name.
  Result<LunPool*> find(const std::string& name);
  // In the configuration's order.
  std::vector<PoolStatus> list();

 private:
  struct Pool {
    PoolConfig config;
    std::unique_ptr<LunPool> opened;
  };
  std::vector<Pool> pools_;
};

}  // namespace vjbod::target
