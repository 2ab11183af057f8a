// SPDX-License-Identifier: Apache-2.0
#include "target/backstore/medium.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "target/backstore/errc.h"

namespace vjbod::backstore {

namespace {

// One read or write call moves at most this much; the kernel's own limit is just below 2 GiB.
constexpr uint64_t transfer_step_max_bytes = uint64_t{1} << 30;
// The file is locked against other writes while a range is given back or cleared: in pieces, so
// that they are not held up for long.
constexpr uint64_t range_step_max_bytes = uint64_t{256} << 20;

Step plan_range(const Op& op, int flags) {
  return {.call = Step::Call::fallocate,
          .range_bytes = std::min(op.length_bytes - op.notes.done_bytes, range_step_max_bytes),
          .offset_bytes = op.offset_bytes + op.notes.done_bytes,
          .flags = flags};
}

Step plan_transfer(const Op& op, Step::Call call) {
  std::byte* memory = op.notes.bounce != nullptr ? op.notes.bounce : op.data.data();
  uint64_t rest = op.length_bytes - op.notes.done_bytes;
  return {.call = call,
          .memory = memory + op.notes.done_bytes,
          .length_bytes = static_cast<uint32_t>(std::min(rest, transfer_step_max_bytes)),
          .offset_bytes = op.offset_bytes + op.notes.done_bytes,
          .flags = op.fua ? RWF_DSYNC : 0};
}

}  // namespace

Medium::Medium() {
  void* memory = ::mmap(nullptr, zero_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  VJBOD_CHECK(memory != MAP_FAILED, "no memory for zeros");
  zeros = static_cast<std::byte*>(memory);
}

Medium::~Medium() {
  ::munmap(zeros, zero_bytes);
}

Result<UniqueFd> Medium::open_for_flush() const {
  UniqueFd fd(::open(fmt::format("/proc/self/fd/{}", data.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (fd) return fd;
  int error = errno;
  return fail(errc_of(error), "cannot open {} a second time, for flushes: {}", path,
              system_code(error).message());
}

Step plan_step(const Medium& medium, const Op& op) {
  switch (op.kind) {
    case OpKind::read: return plan_transfer(op, Step::Call::read);
    case OpKind::write: return plan_transfer(op, Step::Call::write);
    case OpKind::flush: return {.call = Step::Call::fdatasync};
    case OpKind::unmap:
    case OpKind::write_zeroes: break;
  }
  bool may_unmap = op.kind == OpKind::unmap || op.may_unmap;
  if (!op.notes.write_out) {
    if (may_unmap && medium.can_punch_hole && !medium.keep_allocated)
      return plan_range(op, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
    if (medium.can_zero_range) return plan_range(op, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE);
  }
  uint64_t rest = op.length_bytes - op.notes.done_bytes;
  return {.call = Step::Call::write,
          .memory = medium.zeros,
          .length_bytes = static_cast<uint32_t>(std::min<uint64_t>(rest, zero_bytes)),
          .offset_bytes = op.offset_bytes + op.notes.done_bytes};
}

int run_step(const Medium& medium, int flush_fd, const Step& step) {
  iovec vector{step.memory, step.length_bytes};
  auto offset = static_cast<off_t>(step.offset_bytes);
  ssize_t result = -1;
  switch (step.call) {
    case Step::Call::read:
      result = ::preadv2(medium.data.get(), &vector, 1, offset, step.flags);
      break;
    case Step::Call::write:
      result = ::pwritev2(medium.data.get(), &vector, 1, offset, step.flags);
      break;
    case Step::Call::fdatasync: result = ::fdatasync(flush_fd); break;
    case Step::Call::fallocate:
      result =
          ::fallocate(medium.data.get(), step.flags, offset, static_cast<off_t>(step.range_bytes));
      break;
  }
  return result < 0 ? -errno : static_cast<int>(result);
}

}  // namespace vjbod::backstore
