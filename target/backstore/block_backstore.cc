// SPDX-License-Identifier: Apache-2.0
#include "target/backstore/block_backstore.h"

#include <algorithm>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "target/backstore/descriptor_queue.h"
#include "target/backstore/direct_io.h"
#include "target/backstore/errc.h"
#include "target/backstore/in_use.h"

namespace vjbod::backstore {

namespace {

using namespace std::chrono_literals;

struct DeviceFacts {
  uint64_t size_bytes = 0;
  uint32_t sector_bytes = 512;
  uint32_t physical_bytes = 4096;
  bool read_only = false;
};

Result<DeviceFacts> ask_device(int fd, const std::string& path) {
  DeviceFacts facts;
  int sector_bytes = 0;
  unsigned physical_bytes = 0;
  int read_only = 0;
  if (::ioctl(fd, BLKGETSIZE64, &facts.size_bytes) != 0 ||
      ::ioctl(fd, BLKSSZGET, &sector_bytes) != 0 || ::ioctl(fd, BLKPBSZGET, &physical_bytes) != 0 ||
      ::ioctl(fd, BLKROGET, &read_only) != 0) {
    int error = errno;
    return fail(errc_of(error), "cannot examine block device {}: {}", path,
                system_code(error).message());
  }
  facts.sector_bytes = static_cast<uint32_t>(sector_bytes);
  facts.physical_bytes = physical_bytes;
  facts.read_only = read_only != 0;
  return facts;
}

// A number from the device's queue directory in sysfs, which a partition shares with its disk; 0 if
// there is none.
uint64_t queue_number(dev_t device, const char* name) {
  for (const char* place : {"queue", "../queue"}) {
    std::ifstream file(
        fmt::format("/sys/dev/block/{}:{}/{}/{}", major(device), minor(device), place, name));
    uint64_t value = 0;
    if (file >> value) return value;
  }
  return 0;
}

Status check_device(const BackstoreConfig& config, const DeviceFacts& facts) {
  if (facts.read_only && !config.read_only)
    return fail(Errc::permission, "block device {} is read-only", config.path);
  if (facts.sector_bytes > config.block_bytes)
    return fail(Errc::unsupported,
                "block device {} has sectors of {} bytes, larger than the LUN's blocks of {}",
                config.path, facts.sector_bytes, config.block_bytes);
  if (facts.size_bytes < std::max<uint64_t>(config.size_bytes, config.block_bytes))
    return fail(Errc::size, "block device {} has {} bytes, but the LUN has {}", config.path,
                facts.size_bytes, config.size_bytes);
  return {};
}

Result<UniqueFd> open_exclusively(const BackstoreConfig& config, dev_t device) {
  int flags = (config.read_only ? O_RDONLY : O_RDWR) | O_EXCL | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  for (auto waited = 0ms;; waited += predecessor_wait_step) {
    UniqueFd fd(::open(config.path.c_str(), flags));
    if (fd) return fd;
    int error = errno;
    if (error != EBUSY)
      return fail(errc_of(error), "cannot open block device {}: {}", config.path,
                  system_code(error).message());
    std::string user = device_user(device);
    if (waited >= predecessor_wait_max || !user.empty())
      return fail(Errc::in_use, "block device {} is in use: {}", config.path,
                  user.empty() ? "another program has it open exclusively" : user);
    std::this_thread::sleep_for(predecessor_wait_step);
  }
}

}  // namespace

Result<std::shared_ptr<Backstore>> BlockBackstore::open(const BackstoreConfig& config) {
  auto medium = std::make_shared<Medium>();
  medium->path = config.path;
  medium->read_only = config.read_only;
  medium->use_io_uring = config.use_io_uring;
  struct stat status {};
  if (::stat(config.path.c_str(), &status) == 0 && !S_ISBLK(status.st_mode))
    return fail(Errc::wrong_type, "{} is not a block device", config.path);
  Result<UniqueFd> opened = open_exclusively(config, status.st_rdev);
  if (!opened) return fail(opened.error());
  medium->data = std::move(*opened);
  int fd = medium->data.get();
  if (::fstat(fd, &status) != 0 || !S_ISBLK(status.st_mode))
    return fail(Errc::wrong_type, "{} is not a block device", config.path);
  Result<DeviceFacts> facts = ask_device(fd, config.path);
  if (!facts) return fail(facts.error());
  if (Status fits = check_device(config, *facts); !fits) return fail(fits.error());
  if (Status set = set_direct_io(*medium, config); !set) return fail(set.error());
  medium->can_zero_range = queue_number(status.st_rdev, "write_zeroes_max_bytes") != 0;
  medium->can_punch_hole =
      medium->can_zero_range && queue_number(status.st_rdev, "discard_max_bytes") != 0;
  medium->size_bytes = config.size_bytes != 0
                           ? config.size_bytes
                           : facts->size_bytes / config.block_bytes * config.block_bytes;
  Geometry geometry{.block_bytes = config.block_bytes};
  geometry.physical_block_bytes = std::max(facts->physical_bytes, config.block_bytes);
  geometry.unmap_granularity_bytes =
      std::max<uint32_t>(static_cast<uint32_t>(queue_number(status.st_rdev, "discard_granularity")),
                         geometry.physical_block_bytes);
  return std::shared_ptr<Backstore>(new BlockBackstore(std::move(medium), geometry));
}

BlockBackstore::BlockBackstore(std::shared_ptr<Medium> medium, const Geometry& geometry)
    : medium_(std::move(medium)), geometry_(geometry), description_(describe(*medium_)) {}

BackstoreCapabilities BlockBackstore::capabilities() const {
  return {.read_only = medium_->read_only,
          .volatile_cache = true,
          .native_fua = true,
          .unmap = !medium_->read_only && medium_->can_punch_hole,
          .fast_write_zeroes = medium_->can_zero_range,
          .description = description_};
}

Result<std::unique_ptr<BackstoreQueue>> BlockBackstore::open_queue(Reactor& reactor) {
  return DescriptorQueue::open(reactor, medium_);
}

Status BlockBackstore::resize(uint64_t size_bytes) {
  uint64_t device_bytes = 0;
  if (::ioctl(medium_->data.get(), BLKGETSIZE64, &device_bytes) != 0) {
    int error = errno;
    return fail(errc_of(error), "cannot examine block device {}: {}", medium_->path,
                system_code(error).message());
  }
  if (size_bytes < medium_->size_bytes || size_bytes % geometry_.block_bytes != 0 ||
      size_bytes > device_bytes)
    return fail(Errc::size,
                "the LUN on block device {} cannot become {} bytes: it has {}, only grows by "
                "blocks of {}, and the device ends at {}",
                medium_->path, size_bytes, medium_->size_bytes.load(), geometry_.block_bytes,
                device_bytes);
  medium_->size_bytes.store(size_bytes, std::memory_order_release);
  return {};
}

}  // namespace vjbod::backstore
