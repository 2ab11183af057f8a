// SPDX-License-Identifier: Apache-2.0
#include "target/backstore/direct_io.h"

#include <algorithm>

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "target/backstore/errc.h"

namespace vjbod::backstore {

namespace {

struct Alignment {
  uint32_t memory_bytes = 4096;
  uint32_t offset_bytes = 4096;
};

// The C library's struct statx does not have the two fields yet, so the kernel's own is used.
Alignment alignment_of(int fd) {
  struct statx status {};
  constexpr unsigned wanted = STATX_DIOALIGN;  // from Linux 6.1
  if (::syscall(SYS_statx, fd, "", AT_EMPTY_PATH, wanted, &status) == 0 &&
      (status.stx_mask & wanted) != 0 && status.stx_dio_offset_align != 0)
    return {std::max(status.stx_dio_mem_align, 4U), status.stx_dio_offset_align};
  int sector_bytes = 0;
  if (::ioctl(fd, BLKSSZGET, &sector_bytes) == 0 && sector_bytes > 0) {
    auto bytes = static_cast<uint32_t>(sector_bytes);
    return {bytes, bytes};
  }
  return {};
}

}  // namespace

Status set_direct_io(Medium& medium, const BackstoreConfig& config) {
  bool direct = config.cache == CacheMode::direct;
  int flags = ::fcntl(medium.data.get(), F_GETFL);
  flags = direct ? (flags & ~O_NONBLOCK) | O_DIRECT : flags & ~O_NONBLOCK;
  if (::fcntl(medium.data.get(), F_SETFL, flags) != 0) {
    int error = errno;
    return fail(Errc::unsupported, "{} cannot be used with cache = direct: {}; use page-cache",
                config.path, system_code(error).message());
  }
  if (!direct) return {};
  Alignment alignment = alignment_of(medium.data.get());
  if (config.block_bytes < alignment.offset_bytes)
    return fail(Errc::unsupported,
                "{} can be written directly in units of {} bytes only, but the LUN's blocks have "
                "{}; use cache = page-cache, or a LUN with a block size of {}",
                config.path, alignment.offset_bytes, config.block_bytes, alignment.offset_bytes);
  medium.direct = true;
  medium.memory_alignment = alignment.memory_bytes;
  return {};
}

}  // namespace vjbod::backstore
