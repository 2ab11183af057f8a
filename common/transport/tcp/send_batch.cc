// SPDX-License-Identifier: Apache-2.0
#include "common/transport/tcp/send_batch.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"

namespace vjbod::transport {

namespace {

std::byte* end_of(const iovec& piece) {
  return static_cast<std::byte*>(piece.iov_base) + piece.iov_len;
}

}  // namespace

void SendBatch::add_piece(ConstBytes bytes, TaskHandle owner) {
  VJBOD_CHECK(pieces_ < pieces_max);
  // A gathered write only reads; iovec has one type for both directions.
  iovecs_[pieces_] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
  owners_[pieces_] = owner;
  ++pieces_;
}

void SendBatch::add_copied(ConstBytes bytes) {
  if (bytes.empty()) return;
  if (arena_ == nullptr) arena_ = std::make_unique<std::array<std::byte, arena_bytes>>();
  std::byte* to = arena_->data() + arena_used_;
  std::memcpy(to, bytes.data(), bytes.size());
  arena_used_ += bytes.size();
  // What lies behind the last piece in the arena becomes part of it.
  if (pieces_ > first_piece_ && end_of(iovecs_[pieces_ - 1]) == to &&
      owners_[pieces_ - 1] == no_task)
    iovecs_[pieces_ - 1].iov_len += bytes.size();
  else
    add_piece({to, bytes.size()}, no_task);
}

void SendBatch::add(ConstBytes header, ConstBytes payload, ConstBytes trailer, TaskHandle owner) {
  VJBOD_CHECK(!full());
  add_copied(header);
  if (payload.size() <= inline_payload_max_bytes)
    add_copied(payload);
  else
    add_piece(payload, owner);
  add_copied(trailer);
  ++pdus_;
  payload_bytes_ += payload.size();
}

void SendBatch::give_back(TaskHandle task) {
  std::erase(done_, task);
  for (size_t i = first_piece_; i < pieces_; ++i) {
    if (owners_[i] != task) continue;
    auto copy = std::make_unique_for_overwrite<std::byte[]>(iovecs_[i].iov_len);
    std::memcpy(copy.get(), iovecs_[i].iov_base, iovecs_[i].iov_len);
    iovecs_[i].iov_base = copy.get();
    owners_[i] = no_task;
    keep(std::move(copy));
  }
}

void SendBatch::sent(size_t bytes) {
  while (bytes > 0) {
    VJBOD_CHECK(first_piece_ < pieces_, "more was sent than there was");
    iovec& piece = iovecs_[first_piece_];
    const size_t part = std::min(bytes, piece.iov_len);
    piece.iov_base = static_cast<std::byte*>(piece.iov_base) + part;
    piece.iov_len -= part;
    bytes -= part;
    if (piece.iov_len == 0) ++first_piece_;
  }
}

void SendBatch::clear() {
  arena_used_ = pieces_ = first_piece_ = pdus_ = payload_bytes_ = 0;
  kept_.clear();
  done_.clear();
}

}  // namespace vjbod::transport
