// SPDX-License-Identifier: Apache-2.0
#include "target/control/lun_pool.h"

#include <map>
#include <utility>

#include "common/rpc/errc.h"
#include "target/backstore/errc.h"
#include "target/backstore/factory.h"

namespace vjbod::target {

namespace {

class DirectoryLunPool final : public LunPool {
 public:
  explicit DirectoryLunPool(backstore::DirectoryPool directory)
      : directory_(std::move(directory)) {}

  Status create(const std::string& name, uint64_t size_bytes, bool thick) override {
    Result<std::string> made = directory_.create(name, size_bytes, thick);
    if (!made) return fail(made.error());
    return {};
  }
  Status remove(const std::string& name) override { return directory_.remove(name); }
  Result<backstore::BackstoreConfig> describe(const std::string& name, uint64_t) override {
    return backstore::BackstoreConfig{.kind = backstore::BackstoreKind::file,
                                      .path = directory_.path_of(name)};
  }
  Result<Space> space() const override { return directory_.space(); }

 private:
  backstore::DirectoryPool directory_;
};

// The device is looked at, and never written by the pool: what is on it stays until a host writes.
class BlockLunPool final : public LunPool {
 public:
  explicit BlockLunPool(std::string device) : device_(std::move(device)) {}

  Status create(const std::string& name, uint64_t size_bytes, bool) override {
    if (!lun_.empty() && lun_ != name)
      return fail(rpc::Errc::no_space, "{} has a LUN already, and a device takes one", device_);
    const Result<uint64_t> device_bytes = size();
    if (!device_bytes) return fail(device_bytes.error());
    if (size_bytes != *device_bytes)
      return fail(rpc::Errc::usage,
                  "a LUN on {} has the size of the device, {} bytes, and not {}: give --size {}",
                  device_, *device_bytes, size_bytes, *device_bytes);
    lun_ = name;
    return {};
  }
  Status remove(const std::string& name) override {
    if (lun_ == name) lun_.clear();
    return {};
  }
  Result<backstore::BackstoreConfig> describe(const std::string& name, uint64_t) override {
    if (!lun_.empty() && lun_ != name)
      return fail(rpc::Errc::busy, "{} has another LUN already", device_);
    lun_ = name;
    return backstore::BackstoreConfig{.kind = backstore::BackstoreKind::block, .path = device_};
  }
  Result<Space> space() const override {
    Space space;
    space.lun_count = lun_.empty() ? 0 : 1;
    if (!lun_.empty()) return space;  // its LUN has the device open, and all of it
    const Result<uint64_t> device_bytes = size();
    if (!device_bytes) return fail(device_bytes.error());
    space.total_bytes = space.free_bytes = *device_bytes;
    return space;
  }

 private:
  Result<uint64_t> size() const {
    const Result<std::shared_ptr<backstore::Backstore>> device = backstore::open_backstore(
        {.kind = backstore::BackstoreKind::block, .path = device_, .use_io_uring = false});
    if (!device) return fail(device.error());
    return (*device)->geometry().size_bytes;
  }

  const std::string device_;
  std::string lun_;
};

class MemoryLunPool final : public LunPool {
 public:
  Status create(const std::string& name, uint64_t size_bytes, bool) override {
    luns_[name] = size_bytes;
    return {};
  }
  Status remove(const std::string& name) override {
    luns_.erase(name);
    return {};
  }
  Result<backstore::BackstoreConfig> describe(const std::string& name,
                                              uint64_t size_bytes) override {
    if (!luns_.contains(name))
      return fail(rpc::Errc::other,
                  "it was in the memory of a vjbod-targetd that has ended; delete it");
    return backstore::BackstoreConfig{.kind = backstore::BackstoreKind::memory,
                                      .size_bytes = size_bytes};
  }
  Result<Space> space() const override {
    Space space;
    space.lun_count = luns_.size();
    for (const auto& [name, size_bytes] : luns_) space.allocated_bytes += size_bytes;
    return space;
  }

 private:
  std::map<std::string, uint64_t> luns_;
};

}  // namespace

Result<std::unique_ptr<LunPool>> open_lun_pool(const PoolConfig& config) {
  switch (config.kind) {
    case PoolConfig::Kind::directory: break;
    case PoolConfig::Kind::block: return std::make_unique<BlockLunPool>(config.path);
    case PoolConfig::Kind::memory: return std::make_unique<MemoryLunPool>();
  }
  Result<backstore::DirectoryPool> directory = backstore::DirectoryPool::open(config.path);
  if (!directory) return fail(directory.error());
  return std::make_unique<DirectoryLunPool>(std::move(*directory));
}

}  // namespace vjbod::target
