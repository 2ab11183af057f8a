// SPDX-License-Identifier: Apache-2.0
#include "target/backstore/file_backstore.h"

#include <thread>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "common/base/log.h"
#include "target/backstore/descriptor_queue.h"
#include "target/backstore/direct_io.h"
#include "target/backstore/errc.h"
#include "target/backstore/in_use.h"

namespace vjbod::backstore {

namespace {

using namespace std::chrono_literals;

tl::unexpected<Error> system_failure(const char* what, const std::string& path, int error) {
  return fail(errc_of(error), "cannot {} {}: {}", what, path, system_code(error).message());
}

Status lock(const Medium& medium, const struct stat& status) {
  for (auto waited = 0ms; ::flock(medium.data.get(), LOCK_EX | LOCK_NB) != 0;) {
    int error = errno;
    if (error != EWOULDBLOCK) return system_failure("lock", medium.path, error);
    if (waited >= predecessor_wait_max || locked_by_living(status.st_dev, status.st_ino))
      return fail(Errc::in_use, "{} is in use by {}: a file can be one LUN only", medium.path,
                  lock_holder(status.st_dev, status.st_ino));
    std::this_thread::sleep_for(predecessor_wait_step);
    waited += predecessor_wait_step;
  }
  return {};
}

Status check_size(const BackstoreConfig& config, uint64_t file_bytes) {
  if (file_bytes < config.size_bytes)
    return fail(Errc::size,
                "{} has {} bytes, but the LUN has {}: the file was cut off or replaced; restore it "
                "before the LUN is used",
                config.path, file_bytes, config.size_bytes);
  if (config.size_bytes == 0 && (file_bytes == 0 || file_bytes % config.block_bytes != 0))
    return fail(Errc::size, "{} has {} bytes, which is not a whole number of blocks of {}",
                config.path, file_bytes, config.block_bytes);
  return {};
}

// Tried behind the end of the file, where nothing can be damaged.
void probe_ranges(Medium& medium, uint64_t file_bytes) {
  if (medium.read_only) return;
  constexpr off_t probe_bytes = 4096;
  off_t end = static_cast<off_t>((file_bytes + probe_bytes - 1) / probe_bytes * probe_bytes);
  auto works = [&](int mode) {
    return ::fallocate(medium.data.get(), mode | FALLOC_FL_KEEP_SIZE, end, probe_bytes) == 0 ||
           errno == ENOSPC || errno == EFBIG;
  };
  medium.can_zero_range = works(FALLOC_FL_ZERO_RANGE);
  medium.can_punch_hole = works(FALLOC_FL_PUNCH_HOLE);
  // Takes away a block that the probe may have left there; not a byte of the file.
  if (::ftruncate(medium.data.get(), static_cast<off_t>(file_bytes)) != 0)
    log::debug("[{}] cannot trim behind the end: {}", medium.path, system_code(errno).message());
}

}  // namespace

Result<std::shared_ptr<Backstore>> FileBackstore::open(const BackstoreConfig& config) {
  auto medium = std::make_shared<Medium>();
  medium->path = config.path;
  medium->read_only = config.read_only;
  medium->keep_allocated = config.thick;
  medium->use_io_uring = config.use_io_uring;
  // O_NONBLOCK: so that a FIFO or a device in the place of the file cannot hold us up.
  int access = config.read_only ? O_RDONLY : O_RDWR;
  medium->data = UniqueFd(
      ::open(config.path.c_str(), access | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!medium->data) return system_failure("open", config.path, errno);
  int fd = medium->data.get();
  struct stat status {};
  if (::fstat(fd, &status) != 0) return system_failure("examine", config.path, errno);
  if (!S_ISREG(status.st_mode))
    return fail(Errc::wrong_type, "{} is not a regular file", config.path);
  if (Status locked = lock(*medium, status); !locked) return fail(locked.error());
  // Again, now that nobody else changes it.
  if (::fstat(fd, &status) != 0) return system_failure("examine", config.path, errno);
  auto file_bytes = static_cast<uint64_t>(status.st_size);
  if (Status fits = check_size(config, file_bytes); !fits) return fail(fits.error());
  if (Status set = set_direct_io(*medium, config); !set) return fail(set.error());
  struct statfs file_system {};
  if (::fstatfs(fd, &file_system) != 0) return system_failure("examine", config.path, errno);
  medium->in_memory = file_system.f_type == TMPFS_MAGIC || file_system.f_type == RAMFS_MAGIC;
  probe_ranges(*medium, file_bytes);
  medium->size_bytes = config.size_bytes != 0 ? config.size_bytes : file_bytes;
  return std::shared_ptr<Backstore>(new FileBackstore(std::move(medium), config.block_bytes));
}

FileBackstore::FileBackstore(std::shared_ptr<Medium> medium, uint32_t block_bytes)
    : medium_(std::move(medium)), block_bytes_(block_bytes), description_(describe(*medium_)) {}

Geometry FileBackstore::geometry() const {
  return {.size_bytes = medium_->size_bytes.load(std::memory_order_acquire),
          .block_bytes = block_bytes_};
}

BackstoreCapabilities FileBackstore::capabilities() const {
  return {.read_only = medium_->read_only,
          .volatile_cache = true,
          .native_fua = true,
          .unmap = !medium_->read_only && medium_->can_punch_hole && !medium_->keep_allocated,
          .fast_write_zeroes = medium_->can_zero_range,
          .description = description_};
}

uint64_t FileBackstore::allocated_bytes() const {
  struct stat status {};
  if (::fstat(medium_->data.get(), &status) != 0) return 0;
  return static_cast<uint64_t>(status.st_blocks) * 512;  // st_blocks is in these units always
}

Result<std::unique_ptr<BackstoreQueue>> FileBackstore::open_queue(Reactor& reactor) {
  return DescriptorQueue::open(reactor, medium_);
}

Status FileBackstore::resize(uint64_t size_bytes) {
  uint64_t old_bytes = medium_->size_bytes;
  if (medium_->read_only) return fail(Errc::permission, "{} is read-only", medium_->path);
  if (size_bytes < old_bytes || size_bytes % block_bytes_ != 0)
    return fail(Errc::size, "{} of {} bytes cannot become {} bytes: it only grows, by blocks of {}",
                medium_->path, old_bytes, size_bytes, block_bytes_);
  int fd = medium_->data.get();
  struct stat status {};
  if (::fstat(fd, &status) != 0) return system_failure("examine", medium_->path, errno);
  auto wanted = static_cast<off_t>(size_bytes);
  if (medium_->keep_allocated) {
    auto first = static_cast<off_t>(old_bytes);
    if (wanted > first && ::fallocate(fd, 0, first, wanted - first) != 0) {
      int error = errno;
      // Only what lies behind the LUN's end goes: nobody was told about it.
      if (::ftruncate(fd, status.st_size) != 0) error = errno;
      return system_failure("allocate the growth of", medium_->path, error);
    }
  } else if (status.st_size < wanted && ::ftruncate(fd, wanted) != 0) {
    return system_failure("grow", medium_->path, errno);
  }
  if (::fsync(fd) != 0) return system_failure("write out the new size of", medium_->path, errno);
  medium_->size_bytes.store(size_bytes, std::memory_order_release);
  return {};
}

}  // namespace vjbod::backstore
