// SPDX-License-Identifier: Apache-2.0
// Where the bytes of LUNs are: what LunManager needs of a pool, whatever its kind. `name` of a LUN
// is its UUID. On the control reactor; waits for the disk.
#pragma once

#include <memory>
#include <string>

#include "common/base/result.h"
#include "target/backstore/config.h"
#include "target/backstore/directory_pool.h"
#include "target/control/config.h"

namespace vjbod::target {

class LunPool {
 public:
  using Space = backstore::DirectoryPool::Space;

  virtual ~LunPool() = default;

  // Of zeros where the kind can promise it; on stable storage when this returns.
  virtual Status create(const std::string& name, uint64_t size_bytes, bool thick) = 0;
  // not_found (backstore::Errc) when there is none. After a restart it stays removed.
  virtual Status remove(const std::string& name) = 0;
  // How to open one that create() made: kind, path and size are set. An error when it cannot be
  // there any more.
  virtual Result<backstore::BackstoreConfig> describe(const std::string& name,
                                                      uint64_t size_bytes) = 0;
  virtual Result<Space> space() const = 0;
};

Result<std::unique_ptr<LunPool>> open_lun_pool(const PoolConfig& config);

}  // namespace vjbod::target
