// SPDX-License-Identifier: Apache-2.0
#include "target/backstore/descriptor_queue.h"

#include <cstdlib>
#include <cstring>

#include <sys/uio.h>

#include "common/base/log.h"
#include "common/runtime/stopwatch.h"
#include "target/backstore/thread_engine.h"
#include "target/backstore/uring_engine.h"

namespace vjbod::backstore {

namespace {

constexpr uint64_t page_bytes = 4096;

bool is_transfer(const Op& op) {
  return op.kind == OpKind::read || op.kind == OpKind::write;
}

bool needs_bounce(const Medium& medium, const Op& op) {
  return medium.direct && is_transfer(op) &&
         reinterpret_cast<uintptr_t>(op.data.data()) % medium.memory_alignment != 0;
}

}  // namespace

Result<std::unique_ptr<BackstoreQueue>> DescriptorQueue::open(Reactor& reactor,
                                                              std::shared_ptr<Medium> medium) {
  Result<UniqueFd> flush_fd = medium->open_for_flush();
  if (!flush_fd) return fail(std::move(flush_fd).error());
  auto queue = std::unique_ptr<DescriptorQueue>(
      new DescriptorQueue(reactor, std::move(medium), std::move(*flush_fd)));
  const Medium& opened = *queue->medium_;
  int fd = queue->flush_fd_.get();
  StepClient& client = *queue;
  if (opened.use_io_uring) {
    auto engine = UringEngine::open(reactor, opened, fd, client);
    if (engine) {
      queue->engine_ = std::move(*engine);
      return queue;
    }
    log::warn("[{}] no io_uring ({}): using {} worker threads instead", opened.path,
              engine.error().text, ThreadEngine::thread_count);
  }
  queue->engine_ = std::make_unique<ThreadEngine>(reactor, opened, fd, client);
  return queue;
}

DescriptorQueue::DescriptorQueue(Reactor& reactor, std::shared_ptr<Medium> medium,
                                 UniqueFd flush_fd)
    : reactor_(reactor),
      medium_(std::move(medium)),
      flush_fd_(std::move(flush_fd)),
      completions_(reactor) {}

DescriptorQueue::~DescriptorQueue() = default;

void DescriptorQueue::submit(Op& op) {
  op.notes = {};
  if (op.kind != OpKind::flush) {
    uint64_t size_bytes = medium_->size_bytes.load(std::memory_order_acquire);
    VJBOD_CHECK(op.length_bytes <= size_bytes && op.offset_bytes <= size_bytes - op.length_bytes,
                "{}: {} of {} bytes at {} is beyond the end at {}", medium_->path, name_of(op.kind),
                op.length_bytes, op.offset_bytes, size_bytes);
    VJBOD_CHECK(op.kind == OpKind::read || !medium_->read_only, "{} is read-only", medium_->path);
    VJBOD_CHECK(!is_transfer(op) || op.data.size() == op.length_bytes);
    if (op.length_bytes == 0) return completions_.add(op, 0);
  }
  if (op.kind == OpKind::flush || op.fua) {
    int error_number = medium_->flush_error.load(std::memory_order_acquire);
    if (error_number != 0) return completions_.add(op, error_number);
  }
  if (!medium_->direct) {
    if (op.kind == OpKind::read && read_inline(op)) return;
    if (op.kind == OpKind::write && write_inline(op)) return;
  }
  start(op);
}

// True when the op is done. Otherwise what the cache had is in place and the rest is still to do.
bool DescriptorQueue::read_inline(Op& op) {
  if (!nowait_reads_ && !medium_->in_memory) return false;
  iovec vector{op.data.data(), op.data.size()};
  ssize_t count = ::preadv2(medium_->data.get(), &vector, 1, static_cast<off_t>(op.offset_bytes),
                            medium_->in_memory ? 0 : RWF_NOWAIT);
  if (count < 0) {
    if (errno == EOPNOTSUPP || errno == EINVAL) nowait_reads_ = false;
    return false;
  }
  op.notes.done_bytes = static_cast<uint64_t>(count);
  if (op.notes.done_bytes != op.length_bytes) return false;
  completions_.add(op, 0);
  return true;
}

// Only writes of whole pages (others may have to read first), small ones, and only while nothing on
// this LUN waits: then the page cache takes them at once, unless the guard knows better.
bool DescriptorQueue::write_inline(Op& op) {
  if (op.fua) return false;
  if (!medium_->in_memory) {
    if (op.length_bytes > inline_write_max_bytes ||
        (op.offset_bytes | op.length_bytes) % page_bytes != 0 ||
        medium_->slow_ops.load(std::memory_order_relaxed) != 0 ||
        !stall_guard_.allows(reactor_.now()))
      return false;
  }
  iovec vector{op.data.data(), op.data.size()};
  Stopwatch stopwatch;
  ssize_t count =
      ::pwritev2(medium_->data.get(), &vector, 1, static_cast<off_t>(op.offset_bytes), 0);
  Duration took = stopwatch.elapsed();
  stall_guard_.note(took, reactor_.now() + took);
  if (count < 0) return false;  // the engine meets the same error and reports it
  op.notes.done_bytes = static_cast<uint64_t>(count);
  if (op.notes.done_bytes != op.length_bytes) return false;
  completions_.add(op, 0);
  return true;
}

void DescriptorQueue::start(Op& op) {
  if (needs_bounce(*medium_, op)) {
    op.notes.bounce = static_cast<std::byte*>(std::aligned_alloc(
        page_bytes, (op.length_bytes + page_bytes - 1) / page_bytes * page_bytes));
    if (op.notes.bounce == nullptr) return completions_.add(op, ENOMEM);
    if (op.kind == OpKind::write) std::memcpy(op.notes.bounce, op.data.data(), op.data.size());
  }
  medium_->slow_ops.fetch_add(1, std::memory_order_relaxed);
  engine_->start(op);
}

void DescriptorQueue::on_step_done(Op& op, int result) {
  if (result == -EINTR) return engine_->start(op);
  if (result == -EAGAIN && !op.notes.retried) {
    op.notes.retried = true;
    return engine_->start(op);
  }
  if (op.kind == OpKind::flush) return finish(op, -result);
  if (is_transfer(op) || op.notes.write_out) {
    if (result < 0) return finish(op, -result);
    // Nothing moved: the file became shorter behind our back, or the kernel gave no reason.
    if (result == 0) return finish(op, EIO);
    op.notes.done_bytes += static_cast<uint64_t>(result);
  } else {
    Step step = plan_step(*medium_, op);
    bool by_write = step.call == Step::Call::write;
    if (result == -EOPNOTSUPP && !by_write) {
      op.notes.write_out = true;  // zeros then come from us
      return engine_->start(op);
    }
    if (result < 0) return finish(op, -result);
    if (by_write && result == 0) return finish(op, EIO);
    op.notes.done_bytes += by_write ? static_cast<uint64_t>(result) : step.range_bytes;
  }
  if (op.notes.done_bytes < op.length_bytes) return engine_->start(op);
  finish(op, 0);
}

void DescriptorQueue::finish(Op& op, int error_number) {
  medium_->slow_ops.fetch_sub(1, std::memory_order_relaxed);
  if (op.notes.bounce != nullptr) {
    if (op.kind == OpKind::read && error_number == 0)
      std::memcpy(op.data.data(), op.notes.bounce, op.data.size());
    std::free(op.notes.bounce);
    op.notes.bounce = nullptr;
  }
  if (op.kind == OpKind::flush) {
    int none = 0;
    if (error_number != 0 && medium_->flush_error.compare_exchange_strong(none, error_number))
      log::error(
          "[{}] flush failed: {}. Acknowledged writes may be lost; every flush fails until the LUN "
          "is opened again",
          medium_->path, system_code(error_number).message());
    else if (error_number == 0)
      error_number = medium_->flush_error.load(std::memory_order_acquire);
  }
  completions_.add(op, error_number);
}

std::string describe(const Medium& medium) {
  std::string cache = medium.direct ? "direct I/O" : "page cache";
  if (!medium.use_io_uring)
    return fmt::format("{}, {} worker threads", cache, ThreadEngine::thread_count);
  std::string refusal = UringEngine::refusal();
  if (refusal.empty()) return cache + ", io_uring";
  return fmt::format("{}, {} worker threads (no io_uring: {})", cache, ThreadEngine::thread_count,
                     refusal);
}

}  // namespace vjbod::backstore
