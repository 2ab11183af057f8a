// SPDX-License-Identifier: Apache-2.0
// The way of a request through a disk: taken in, cut into pieces, issued, judged, answered. Nothing
// here allocates, and everything but taking in happens at the end of a loop turn or in the answer
// of the target.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "initiator/disk/disk_impl.h"

namespace vjbod::initiator {

namespace {

bool modifies(BlockOperation operation) {
  return operation == BlockOperation::write || operation == BlockOperation::trim ||
         operation == BlockOperation::write_zeroes;
}

PieceKind kind_of(BlockOperation operation) {
  switch (operation) {
    case BlockOperation::read: return PieceKind::read;
    case BlockOperation::write: return PieceKind::write;
    case BlockOperation::trim: return PieceKind::trim;
    case BlockOperation::write_zeroes: return PieceKind::zero;
    case BlockOperation::flush:
    case BlockOperation::cache: break;
  }
  return PieceKind::flush;
}

const char* name_of(PieceKind kind) {
  switch (kind) {
    case PieceKind::read: return "read";
    case PieceKind::write: return "write";
    case PieceKind::trim: return "trim";
    case PieceKind::zero:
    case PieceKind::zero_data: return "write of zeros";
    case PieceKind::flush: return "flush";
  }
  return "command";
}

}  // namespace

// --- taking in ---

void Disk::Impl::submit(BlockRequest& request) {
  request.progress = {};
  request.progress.submitted_at = request.progress.issued_at = reactor_.now();
  if (int errno_value = refusal(); errno_value != 0) return answer(request, errno_value);
  if (int errno_value = check(request); errno_value != 0) return answer(request, errno_value);
  if (request.operation == BlockOperation::cache) return answer(request, 0);
  if (request.operation == BlockOperation::flush) {
    if (flush_error_ != 0) return answer(request, flush_error_);
  } else if (request.length_bytes == 0) {
    return answer(request, 0);
  }
  wait(request, false);
}

int Disk::Impl::check(const BlockRequest& request) const {
  if (!geometry_known_) return EIO;
  if (request.operation == BlockOperation::flush) return 0;
  // A frontend on another thread may know an older geometry, so this is an answer and no bug.
  const uint64_t block = geometry_.block_bytes;
  if (request.offset_bytes % block != 0 || request.length_bytes % block != 0) return EINVAL;
  if (request.offset_bytes > geometry_.size_bytes ||
      request.length_bytes > geometry_.size_bytes - request.offset_bytes)
    return EIO;
  if (modifies(request.operation) && geometry_.read_only) return EROFS;
  if (request.operation == BlockOperation::trim && !geometry_.trim) return EOPNOTSUPP;
  if (request.operation == BlockOperation::write_zeroes && request.fast_only &&
      !geometry_.fast_write_zeroes)
    return EOPNOTSUPP;
  const bool has_data =
      request.operation == BlockOperation::read || request.operation == BlockOperation::write;
  VJBOD_CHECK(!has_data || request.data.size() == request.length_bytes,
              "a {} of {} bytes with {} bytes of memory", initiator::name_of(request.operation),
              request.length_bytes, request.data.size());
  return 0;
}

int Disk::Impl::refusal() const {
  if (detaching_) return ESHUTDOWN;
  if (dead_ || refused_ || (failing_ && !online_)) return EIO;
  return 0;
}

void Disk::Impl::wait(BlockRequest& request, bool in_front) {
  if (in_front)
    waiting_.push_front(request);
  else
    waiting_.push_back(request);
  ++waiting_count_;
  wake();
}

void Disk::Impl::stop_waiting(BlockRequest& request) {
  request.unlink();
  --waiting_count_;
}

void Disk::Impl::answer(BlockRequest& request, int errno_value) {
  request.progress.errno_value = errno_value;
  answered_.push_back(request);
  wake();
}

// --- the turn's work ---

void Disk::Impl::run_deferred() {
  notice_state();
  answer_answered();
  if (std::exchange(drop_waiting_, false)) fail_waiting_and_queued(EIO);
  if (int errno_value = refusal(); errno_value != 0) fail_waiting_and_queued(errno_value);
  if (online_) {
    cut_waiting();
    issue_queued();
  }
  if (std::exchange(identity_news_, false)) observer_.on_identity_learned(*identity_, geometry_);
  if (std::exchange(geometry_news_, false))
    for (BlockDeviceObserver* observer : observers_) observer->on_geometry(geometry_);
  if (std::exchange(status_news_, false)) observer_.on_disk_changed();
  finish_detach();
}

void Disk::Impl::answer_answered() {
  IntrusiveList<BlockRequest> batch;
  batch.append(answered_);
  while (!batch.empty()) {
    BlockRequest& request = batch.pop_front();
    finish(request, request.progress.errno_value);
  }
}

// What the target has is not in here: its answer, or the end of its session, comes first.
void Disk::Impl::fail_waiting_and_queued(int errno_value) {
  IntrusiveList<BlockRequest> batch;  // an owner may submit again from inside its answer
  batch.append(waiting_);
  while (!batch.empty()) {
    BlockRequest& request = batch.front();
    stop_waiting(request);
    if (request.progress.errno_value == 0) request.progress.errno_value = errno_value;
    if (request.progress.pieces == 0) step_done(request);
  }
  while (RequestSlot* slot = table_.next()) piece_done(*slot, errno_value);
}

void Disk::Impl::cut_waiting() {
  while (!waiting_.empty()) {
    RequestSlot* slot = table_.acquire();
    if (slot == nullptr) return;
    cut(waiting_.front(), *slot);
  }
}

// Takes the next piece off a request. Pieces of one request are under way side by side.
void Disk::Impl::cut(BlockRequest& request, RequestSlot& slot) {
  BlockRequest::Progress& progress = request.progress;
  Piece piece;
  piece.kind = progress.flushing ? PieceKind::flush : kind_of(request.operation);
  bool is_last = true;
  if (piece.kind == PieceKind::flush) {
    piece.blocks = 1;
  } else {
    const uint64_t block = geometry_.block_bytes;
    uint64_t limit = features_.transfer_blocks_max;
    if (piece.kind == PieceKind::trim)
      limit = geometry_.trim_bytes_max / block;
    else if (piece.kind == PieceKind::zero && features_.write_same)
      limit = features_.write_same_blocks_max;
    const uint64_t rest = request.length_bytes - progress.cut_bytes;
    piece.lba = (request.offset_bytes + progress.cut_bytes) / block;
    piece.blocks = std::min(std::max<uint64_t>(limit, 1), rest / block);
    piece.request_offset_bytes = progress.cut_bytes;
    piece.force_unit_access = request.operation == BlockOperation::write &&
                              request.force_unit_access && features_.force_unit_access;
    piece.may_unmap = !request.no_hole;
    progress.cut_bytes += piece.blocks * block;
    is_last = progress.cut_bytes == request.length_bytes;
  }
  slot.request = &request;
  slot.piece = piece;
  slot.lun = lun_field_;
  slot.owner = this;
  ++progress.pieces;
  if (is_last) stop_waiting(request);
  table_.queue_back(slot);
}

void Disk::Impl::issue_queued() {
  while (!paused_until_ && online_ && channel_->can_issue()) {
    RequestSlot* slot = table_.next();
    if (slot == nullptr) return;
    if (slot->piece.kind == PieceKind::zero && !features_.write_same) {
      if (slot->request->fast_only) {
        piece_done(*slot, EOPNOTSUPP);
        continue;
      }
      slot->piece.kind = PieceKind::zero_data;
    }
    const ConstBytes zeros(zeros_.get(), zeros_bytes);
    slot->blocks_under_way =
        translate(slot->piece, features_, slot->request->data, zeros, slot->parameters, *slot);
    if (slot->piece.kind == PieceKind::flush) slot->covers_writes = unflushed_.writes_completed();
    const TimePoint now = reactor_.now();
    slot->request->progress.issued_at = now;
    ++counters_.commands;
    if (slot->replays > 0) ++counters_.replays;
    table_.issue(*slot, generation_, now);
    channel_->issue(*slot);
  }
}

// --- answers ---

void Disk::Impl::on_command_done(ChannelCommand& command, const ChannelCompletion& completion) {
  auto& slot = static_cast<RequestSlot&>(command);
  table_.complete(slot, generation_);
  wake();
  const Verdict verdict = judge(slot.piece.kind, command, completion, slot.tries);
  if (verdict.writes_lost && flush_error_ == 0) {
    flush_error_ = EIO;
    log_.error("the target has lost an earlier write: {}; flushes fail from now on",
               describe(completion));
  }
  switch (verdict.action) {
    case Verdict::Action::done: return part_done(slot);
    case Verdict::Action::retry: return put_back(slot, Duration::zero());
    case Verdict::Action::retry_later:
      if (slot.trouble_since == TimePoint{}) slot.trouble_since = reactor_.now();
      if (policy_.io_timeout > Duration::zero() &&
          reactor_.now() - slot.trouble_since >= policy_.io_timeout)
        break;
      return put_back(slot, verdict.delay);
    case Verdict::Action::probe:
      log_.info("the target says that the LUN has changed: {}", describe(completion));
      put_back(slot, Duration::zero());
      probe_again_ = !online_;  // one is under way, and may have asked before the change
      return supervisor_.probe_wanted();
    case Verdict::Action::fall_back:
      log_.info("the target has no WRITE SAME (16): zeros are sent over the wire");
      features_.write_same = false;
      geometry_.fast_write_zeroes = false;
      return put_back(slot, Duration::zero());
    case Verdict::Action::fail: break;
  }
  int errno_value = verdict.action == Verdict::Action::fail ? verdict.errno_value : EIO;
  if (slot.piece.kind == PieceKind::flush && errno_value == EOPNOTSUPP) {
    // A target without a cache need not know the command that flushes it.
    if (!geometry_.volatile_cache) return part_done(slot);
    errno_value = EIO;
  }
  log_failure(slot, completion, errno_value);
  if (slot.piece.kind == PieceKind::flush && flush_error_ == 0) {
    flush_error_ = errno_value;
    log_.error("a flush failed: flushes fail from now on, until the disk is connected anew");
  }
  piece_done(slot, errno_value);
}

void Disk::Impl::put_back(RequestSlot& slot, Duration delay) {
  ++counters_.retries;
  table_.retry(slot);
  if (delay == Duration::zero()) return;
  const TimePoint until = reactor_.now() + delay;
  paused_until_ = std::max(paused_until_.value_or(until), until);
  arm_timer();
}

// A command of the piece has succeeded; perhaps not the last one.
void Disk::Impl::part_done(RequestSlot& slot) {
  Piece& piece = slot.piece;
  piece.blocks_done += slot.blocks_under_way;
  slot.tries = {};
  slot.trouble_since = {};
  if (piece.kind == PieceKind::flush) {
    if (flush_error_ != 0) return piece_done(slot, flush_error_);
    unflushed_.flushed(slot.covers_writes);
  } else if (piece.kind != PieceKind::read && geometry_.volatile_cache &&
             !piece.force_unit_access) {
    // Counted per command, not per request: what is done of a request is lost with the cache, too,
    // and is not replayed.
    unflushed_.write_completed();
  }
  if (piece.finished()) return piece_done(slot, 0);
  table_.retry(slot);
}

void Disk::Impl::piece_done(RequestSlot& slot, int errno_value) {
  BlockRequest& request = *slot.request;
  table_.release(slot);
  --request.progress.pieces;
  if (errno_value != 0 && request.progress.errno_value == 0) {
    request.progress.errno_value = errno_value;
    if (request.linked()) stop_waiting(request);  // the rest of it is pointless
  }
  if (request.progress.pieces == 0 && !request.linked()) step_done(request);
}

bool Disk::Impl::needs_flush(const BlockRequest& request) const {
  if (!request.force_unit_access || !modifies(request.operation) || !geometry_.volatile_cache)
    return false;
  return request.operation != BlockOperation::write || !features_.force_unit_access;
}

// Nothing of the request is waiting or under way.
void Disk::Impl::step_done(BlockRequest& request) {
  BlockRequest::Progress& progress = request.progress;
  if (progress.errno_value == 0 && !progress.flushing && needs_flush(request)) {
    if (flush_error_ != 0) return finish(request, flush_error_);
    progress.flushing = true;
    return wait(request, true);
  }
  finish(request, progress.errno_value);
}

void Disk::Impl::finish(BlockRequest& request, int errno_value) {
  const TimePoint now = reactor_.now();
  const BlockRequest::Progress& progress = request.progress;
  OperationCounters& counters = counters_.of(request.operation);
  ++counters.operations;
  if (errno_value == 0)
    counters.bytes += request.length_bytes;
  else
    ++counters.errors;
  counters.queued += progress.issued_at - progress.submitted_at;
  counters.service += now - progress.issued_at;
  counters.longest = std::max(counters.longest, now - progress.submitted_at);
  request.owner->on_request_done(request, errno_value);
}

void Disk::Impl::log_failure(const RequestSlot& slot, const ChannelCompletion& completion,
                             int errno_value) {
  const TimePoint now = reactor_.now();
  if (failure_logged_at_ && now - *failure_logged_at_ < failure_log_interval) {
    ++failures_unlogged_;
    return;
  }
  log_.warn("a {} of {} blocks at block {} failed with errno {}: {} ({} more before)",
            name_of(slot.piece.kind), slot.piece.blocks, slot.piece.lba, errno_value,
            describe(completion), failures_unlogged_);
  failure_logged_at_ = now;
  failures_unlogged_ = 0;
}

}  // namespace vjbod::initiator
