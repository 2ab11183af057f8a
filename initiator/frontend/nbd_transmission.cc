// SPDX-License-Identifier: Apache-2.0
#include "initiator/frontend/nbd_transmission.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "initiator/frontend/nbd_transmission_slots.h"

namespace vjbod::initiator::nbd {

void Transmission::PieceQueue::push(Piece& piece) {
  piece.next = nullptr;
  (first == nullptr ? first : last->next) = &piece;
  last = &piece;
}

Transmission::Piece& Transmission::PieceQueue::pop() {
  Piece& piece = *first;
  first = piece.next;
  return piece;
}

Transmission::Transmission(const BlockGeometry& geometry, bool structured_replies, Reactor& reactor,
                           Deferred& progress)
    : geometry_(geometry),
      structured_(structured_replies),
      reactor_(reactor),
      progress_(progress),
      pool_(memory_bytes_max + staging_bytes, &reactor.slabs()),
      requests_(std::make_unique<Request[]>(requests_max)),
      pieces_(std::make_unique<Piece[]>(pieces_max)) {
  for (size_t i = requests_max; i-- > 0;) {
    requests_[i].next_free = requests_free_;
    requests_free_ = &requests_[i];
  }
  for (size_t i = pieces_max; i-- > 0;) {
    pieces_[i].next = pieces_free_;
    pieces_free_ = &pieces_[i];
  }
}

Transmission::~Transmission() {
  VJBOD_CHECK(idle(), "{} requests are under way", requests_under_way());
}

// --- socket to disk ---

bool Transmission::make_staging() {
  if (!staging_) {
    staging_ = pool_.acquire(staging_bytes);
    staged_begin_ = staged_end_ = 0;
  }
  return static_cast<bool>(staging_);
}

void Transmission::received_early(ConstBytes bytes) {
  const bool have_staging = make_staging();
  VJBOD_CHECK(have_staging && bytes.size() <= staging_bytes);
  if (!bytes.empty()) std::memcpy(staging_.bytes().data(), bytes.data(), bytes.size());
  staged_end_ = bytes.size();
  process();
}

size_t Transmission::receive_targets(std::span<iovec, 2> into) {
  if (input_ended_ || waits_for_room_) return 0;
  // Too little memory for the staging area: only when all of it is in requests that will finish.
  if (!make_staging()) {
    waits_for_room_ = true;
    return 0;
  }
  // Between receives there is at most part of a header left.
  const size_t rest = staged();
  if (staged_begin_ > 0) {
    std::memmove(staging_.bytes().data(), staging_.bytes().data() + staged_begin_, rest);
    staged_begin_ = 0;
    staged_end_ = rest;
  }
  size_t count = 0;
  size_t staging_room = staging_bytes - rest;
  if (filling_ != nullptr) {
    const Bytes gap = filling_->data.subspan(filling_->filled_bytes);
    into[count++] = {gap.data(), gap.size()};
    const bool last_piece =
        writing_->progress_bytes + filling_->data.size() == writing_->header.length_bytes;
    if (!last_piece) return count;
  }
  if (expect_large_) staging_room = request_bytes - std::min(rest, request_bytes);
  into[count++] = {staging_.bytes().data() + staged_end_, staging_room};
  return count;
}

void Transmission::received(size_t bytes) {
  if (filling_ != nullptr) {
    const size_t filled = std::min(bytes, filling_->data.size() - filling_->filled_bytes);
    filling_->filled_bytes += static_cast<uint32_t>(filled);
    bytes -= filled;
  }
  staged_end_ += bytes;
  process();
}

bool Transmission::resume() {
  if (waits_for_room_) process();
  return !waits_for_room_ && !input_ended_;
}

void Transmission::process() {
  waits_for_room_ = false;
  for (;;) {
    if (reading_ != nullptr) {
      if (!issue_read()) break;
    } else if (input_ended_) {
      break;
    } else if (writing_ != nullptr) {
      if (!fill_write()) break;
    } else if (skipping_ != nullptr) {
      if (!skip_payload()) break;
    } else {
      if (staged() < request_bytes) break;
      const ConstBytes header = staging_.bytes().subspan(staged_begin_, request_bytes);
      const auto request = decode_request(header.first<request_bytes>());
      if (!request) {
        violation_ = "a request does not start with the right magic number";
        input_ended_ = true;
        break;
      }
      if (!begin(*request)) break;
      unstage(request_bytes);
    }
  }
  port_->flush();
}

// False when there is no room for it yet.
bool Transmission::begin(const RequestHeader& header) {
  if (header.command == Command::disconnect) {
    input_ended_ = true;
    return true;
  }
  if (requests_free_ == nullptr || pieces_free_ == nullptr) {
    waits_for_room_ = true;
    return false;
  }
  Request& request = take_request(header);
  const Verdict verdict = check_request(header, geometry_, structured_);
  expect_large_ = header.command == Command::write && verdict.error == WireError::none &&
                  header.length_bytes > copied_payload_bytes_max;
  if (verdict.error != WireError::none) {
    refuse(request, verdict.error, verdict.reason);
  } else if (header.command == Command::read) {
    reading_ = &request;
  } else if (header.command == Command::write) {
    writing_ = &request;
    request.flush_at_end = (header.flags & command_flag::fua) != 0 &&
                           header.length_bytes > streamed_piece_bytes_max &&
                           !geometry_.force_unit_access && geometry_.volatile_cache;
  } else {
    submit_plain(request);
  }
  return true;
}

void Transmission::refuse(Request& request, WireError error, std::string_view reason) {
  request.error = error;
  request.reason = reason;
  if (request.header.command == Command::write && request.header.length_bytes > 0) {
    skipping_ = &request;  // answered when its payload is out of the way
    return;
  }
  request.all_submitted = true;
  Piece* piece = take_piece(request, 0);
  finish_whole(request, *piece);
}

// True when the refused write's payload is out of the way.
bool Transmission::skip_payload() {
  Request& request = *skipping_;
  const size_t skipped =
      std::min<size_t>(staged(), request.header.length_bytes - request.progress_bytes);
  unstage(skipped);
  request.progress_bytes += static_cast<uint32_t>(skipped);
  if (request.progress_bytes < request.header.length_bytes) return false;
  Piece* piece = take_piece(request, 0);
  if (piece == nullptr) {
    waits_for_room_ = true;
    return false;
  }
  skipping_ = nullptr;
  request.all_submitted = true;
  finish_whole(request, *piece);
  return true;
}

void Transmission::submit_plain(Request& request) {
  Piece* piece = take_piece(request, 0);  // begin() has seen a free one
  request.all_submitted = true;
  const RequestHeader& header = request.header;
  piece->data = {};
  piece->offset_bytes = header.command == Command::flush ? 0 : header.offset_bytes;
  piece->length_bytes = header.command == Command::flush ? 0 : header.length_bytes;
  piece->no_hole = (header.flags & command_flag::no_hole) != 0;
  piece->fast_only = (header.flags & command_flag::fast_zero) != 0;
  switch (header.command) {
    case Command::flush: piece->operation = BlockOperation::flush; break;
    case Command::trim: piece->operation = BlockOperation::trim; break;
    case Command::cache: piece->operation = BlockOperation::cache; break;
    default: piece->operation = BlockOperation::write_zeroes; break;
  }
  submit(*piece, piece->length_bytes);
}

// True when all of the read is at the disk.
bool Transmission::issue_read() {
  Request& request = *reading_;
  const bool whole = !structured_ || (request.header.flags & command_flag::df) != 0;
  const size_t piece_bytes = whole ? piece_bytes_max : streamed_piece_bytes_max;
  while (request.progress_bytes < request.header.length_bytes) {
    const size_t length =
        std::min<size_t>(piece_bytes, request.header.length_bytes - request.progress_bytes);
    Piece* piece = take_piece(request, length);
    if (piece == nullptr) {
      waits_for_room_ = true;
      return false;
    }
    piece->operation = BlockOperation::read;
    piece->no_hole = false;
    piece->offset_bytes = request.header.offset_bytes + request.progress_bytes;
    piece->data = piece->buffer.bytes().first(length);
    if (whole) request.unsent.push(*piece);
    request.progress_bytes += static_cast<uint32_t>(length);
    request.all_submitted = request.progress_bytes == request.header.length_bytes;
    submit(*piece, length);
  }
  reading_ = nullptr;
  return true;
}

// True when the whole payload has come and is at the disk.
bool Transmission::fill_write() {
  Request& request = *writing_;
  while (request.progress_bytes < request.header.length_bytes) {
    if (filling_ == nullptr) {
      const size_t length = std::min<size_t>(streamed_piece_bytes_max,
                                             request.header.length_bytes - request.progress_bytes);
      filling_ = take_piece(request, length);
      if (filling_ == nullptr) {
        waits_for_room_ = true;
        return false;
      }
      filling_->operation = BlockOperation::write;
      filling_->no_hole = false;
      filling_->offset_bytes = request.header.offset_bytes + request.progress_bytes;
      filling_->data = filling_->buffer.bytes().first(length);
      filling_->filled_bytes = 0;
    }
    const size_t copied = std::min(staged(), filling_->data.size() - filling_->filled_bytes);
    if (copied > 0) {
      std::memcpy(filling_->data.data() + filling_->filled_bytes,
                  staging_.bytes().data() + staged_begin_, copied);
      unstage(copied);
      filling_->filled_bytes += static_cast<uint32_t>(copied);
    }
    if (filling_->filled_bytes < filling_->data.size()) return false;
    Piece& full = *filling_;
    filling_ = nullptr;
    request.progress_bytes += full.filled_bytes;
    request.all_submitted = request.progress_bytes == request.header.length_bytes;
    submit(full, full.data.size());
  }
  writing_ = nullptr;
  return true;
}

void Transmission::end_input() {
  input_ended_ = true;
  // The rest of a payload will never come; what was received of it in whole pieces is written, as
  // on a disk whose power goes in the middle of a write.
  if (writing_ != nullptr) abandon(*std::exchange(writing_, nullptr), WireError::io);
  if (skipping_ != nullptr) {
    Request& request = *std::exchange(skipping_, nullptr);
    abandon(request, request.error);
  }
}

void Transmission::stop() {
  end_input();
  waits_for_room_ = false;
  if (reading_ != nullptr) abandon(*std::exchange(reading_, nullptr), WireError::shutting_down);
}

// No more pieces will be submitted for the request: answers it with `error` when those at the disk
// are back.
void Transmission::abandon(Request& request, WireError error) {
  if (request.error == WireError::none) {
    request.error = error;
    request.reason = reason_of(error);
  }
  request.all_submitted = true;
  Piece* unfilled = std::exchange(filling_, nullptr);
  if (request.at_disk > 0) {
    if (unfilled != nullptr) free_piece(*unfilled);
    return;
  }
  Piece* carrier = unfilled;
  if (carrier == nullptr && !request.unsent.empty()) carrier = request.unsent.first;
  if (carrier == nullptr) carrier = take_piece(request, 0);
  if (carrier != nullptr) {
    finish_whole(request, *carrier);
  } else {
    request.answered = true;  // it has no reply: its connection is about to end
    free_request_if_over(request);
  }
}

// --- slots ---

Transmission::Request& Transmission::take_request(const RequestHeader& header) {
  Request& request = *requests_free_;
  requests_free_ = request.next_free;
  --requests_free_count_;
  ++requests_taken_;
  request = Request{};
  request.header = header;
  return request;
}

// Nothing when there is no free piece or no memory.
Transmission::Piece* Transmission::take_piece(Request& request, size_t buffer_bytes) {
  if (pieces_free_ == nullptr) return nullptr;
  Piece& piece = *pieces_free_;
  if (buffer_bytes > 0) {
    piece.buffer = pool_.acquire(buffer_bytes);
    if (!piece.buffer) return nullptr;
  }
  pieces_free_ = piece.next;
  piece.next = nullptr;
  piece.request = &request;
  ++request.pieces_held;
  return &piece;
}

void Transmission::submit(Piece& piece, size_t length_bytes) {
  Request& request = *piece.request;
  piece.length_bytes = length_bytes;
  // Clients may set the flag on any command; it means something on those that change data.
  const bool changes_data = piece.operation == BlockOperation::write ||
                            piece.operation == BlockOperation::write_zeroes ||
                            piece.operation == BlockOperation::trim;
  piece.force_unit_access =
      changes_data && (request.header.flags & command_flag::fua) != 0 && !request.flush_at_end;
  ++request.at_disk;
  port_->submit(piece);
}

void Transmission::free_piece(Piece& piece) {
  Request& request = *piece.request;
  piece.buffer.reset();
  piece.body = {};
  piece.request = nullptr;
  piece.next = pieces_free_;
  pieces_free_ = &piece;
  --request.pieces_held;
  free_request_if_over(request);
}

void Transmission::free_request_if_over(Request& request) {
  if (!request.answered || request.pieces_held > 0) return;
  request.answered = false;
  request.next_free = requests_free_;
  requests_free_ = &request;
  ++requests_free_count_;
}

void Transmission::release_memory() {
  if (staged() == 0 && filling_ == nullptr) staging_.reset();
  pool_.trim(pool_.lent_bytes());
}

}  // namespace vjbod::initiator::nbd
