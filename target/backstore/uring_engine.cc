// SPDX-License-Identifier: Apache-2.0
#include "target/backstore/uring_engine.h"

#include <array>

#include <sys/eventfd.h>

#include "target/backstore/errc.h"

namespace vjbod::backstore {

namespace {

constexpr int data_file = 0;  // indices of the registered files
constexpr int flush_file = 1;

// With the first set of flags the kernel does its share of a completion when this thread asks for
// it, not in the middle of other work; kernels before 6.1 do not know them.
int make_ring(io_uring& ring, unsigned entries) {
  int result = 0;
  for (unsigned flags : {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, 0U}) {
    io_uring_params parameters{};
    parameters.flags = flags | IORING_SETUP_CQSIZE;
    parameters.cq_entries = UringEngine::in_kernel_max;
    result = io_uring_queue_init_params(entries, &ring, &parameters);
    if (result != -EINVAL) break;
  }
  return result;
}

std::string text_of(int error_number) {
  return system_code(error_number).message();
}

}  // namespace

std::string UringEngine::refusal() {
  io_uring ring{};
  int result = make_ring(ring, 1);
  if (result < 0) return text_of(-result);
  io_uring_queue_exit(&ring);
  return {};
}

UringEngine::UringEngine(Reactor& reactor, const Medium& medium, StepClient& client)
    : reactor_(reactor), medium_(medium), client_(client) {
  ring_.ring_fd = -1;
}

Result<std::unique_ptr<UringEngine>> UringEngine::open(Reactor& reactor, const Medium& medium,
                                                       int flush_fd, StepClient& client) {
  auto engine = std::unique_ptr<UringEngine>(new UringEngine(reactor, medium, client));
  engine->eventfd_ = UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!engine->eventfd_) {
    int error = errno;
    return fail(errc_of(error), "no eventfd: {}", text_of(error));
  }
  io_uring ring{};
  if (int result = make_ring(ring, submission_entries); result < 0)
    return fail(errc_of(-result), "{}", text_of(-result));
  engine->ring_ = ring;
  std::array<int, 2> files{};
  files[data_file] = medium.data.get();
  files[flush_file] = flush_fd;
  int result = io_uring_register_files(&engine->ring_, files.data(), files.size());
  if (result == 0) result = io_uring_register_eventfd(&engine->ring_, engine->eventfd_.get());
  if (result < 0) return fail(errc_of(-result), "{}", text_of(-result));
  engine->watch_ =
      reactor.watch_readable(engine->eventfd_.get(), [&self = *engine] { self.on_completions(); });
  return engine;
}

UringEngine::~UringEngine() {
  VJBOD_CHECK(in_ring_ == 0, "a backstore queue was destroyed with {} ops outstanding", in_ring_);
  watch_.reset();
  if (ring_.ring_fd < 0) return;
  // The kernel takes a ring down some time after it was closed. Without this, it would hold the
  // file, and with it the lock that makes the LUN ours, until then.
  io_uring_unregister_files(&ring_);
  io_uring_queue_exit(&ring_);
}

void UringEngine::start(Op& op) {
  if (in_ring_ < in_kernel_max && waiting_.empty() && prepare(op)) {
    reactor_.defer(*this);
    return;
  }
  waiting_.push_back(op);
  reactor_.defer(*this);
}

// False when the submission ring is full even after handing it to the kernel.
bool UringEngine::prepare(Op& op) {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  if (entry == nullptr) {
    submit();
    entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) return false;
  }
  Step step = plan_step(medium_, op);
  switch (step.call) {
    case Step::Call::read:
      io_uring_prep_read(entry, data_file, step.memory, step.length_bytes, step.offset_bytes);
      entry->rw_flags = step.flags;
      break;
    case Step::Call::write:
      io_uring_prep_write(entry, data_file, step.memory, step.length_bytes, step.offset_bytes);
      entry->rw_flags = step.flags;
      break;
    case Step::Call::fdatasync:
      io_uring_prep_fsync(entry, flush_file, IORING_FSYNC_DATASYNC);
      break;
    case Step::Call::fallocate:
      io_uring_prep_fallocate(entry, data_file, step.flags, static_cast<off_t>(step.offset_bytes),
                              static_cast<off_t>(step.range_bytes));
      break;
  }
  // A step that came back with EAGAIN goes to a kernel worker, which can wait.
  entry->flags |= op.notes.retried ? IOSQE_FIXED_FILE | IOSQE_ASYNC : IOSQE_FIXED_FILE;
  io_uring_sqe_set_data(entry, &op);
  ++in_ring_;
  return true;
}

void UringEngine::run_deferred() {
  while (!waiting_.empty() && in_ring_ < in_kernel_max) {
    Op& op = waiting_.pop_front();
    if (prepare(op)) continue;
    waiting_.push_front(op);
    break;
  }
  submit();
}

void UringEngine::submit() {
  if (io_uring_sq_ready(&ring_) == 0) return;
  int result = io_uring_submit(&ring_);
  // EAGAIN, EBUSY: the kernel is short of memory or wants its completions taken first. What it did
  // not take stays in the ring and is offered again in the next turn.
  if (result < 0)
    VJBOD_CHECK(result == -EAGAIN || result == -EBUSY || result == -EINTR || result == -ENOMEM,
                "io_uring_enter: {}", text_of(-result));
  if (io_uring_sq_ready(&ring_) != 0) reactor_.defer(*this);
}

void UringEngine::on_completions() {
  eventfd_t ignored = 0;
  ::eventfd_read(eventfd_.get(), &ignored);
  io_uring_get_events(&ring_);
  io_uring_cqe* entry = nullptr;
  while (io_uring_peek_cqe(&ring_, &entry) == 0) {
    Op& op = *static_cast<Op*>(io_uring_cqe_get_data(entry));
    int result = entry->res;
    io_uring_cqe_seen(&ring_, entry);
    --in_ring_;
    client_.on_step_done(op, result);
  }
  if (!waiting_.empty()) reactor_.defer(*this);
}

}  // namespace vjbod::backstore
