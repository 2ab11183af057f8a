// SPDX-License-Identifier: Apache-2.0
// The way back of nbd_transmission: the disk's answers become replies.
#include <utility>

#include "common/base/check.h"
#include "initiator/frontend/nbd_transmission.h"
#include "initiator/frontend/nbd_transmission_slots.h"

namespace vjbod::initiator::nbd {

void Transmission::on_port_done(PortRequest& port_request, int errno_value) {
  auto& piece = static_cast<Piece&>(port_request);
  Request& request = *piece.request;
  VJBOD_CHECK(request.at_disk > 0);
  --request.at_disk;
  if (errno_value != 0 && request.error == WireError::none) {
    request.error = wire_error(errno_value);
    request.reason = reason_of(request.error);
  }
  piece_done(piece);
  reactor_.defer(progress_);
}

void Transmission::piece_done(Piece& piece) {
  Request& request = *piece.request;
  const bool over = request.over();
  const bool chunked =
      request.header.command == Command::read && structured_ && request.unsent.empty();
  if (chunked && request.error == WireError::none) {
    // A chunk of its own, in whatever order the disk answers.
    piece.body = piece.data;
    piece.head_bytes = static_cast<uint32_t>(piece.head.size());
    encode_structured_reply(std::span(piece.head).first<structured_reply_bytes>(),
                            {over, Chunk::offset_data, request.header.cookie,
                             static_cast<uint32_t>(chunk_offset_bytes + piece.data.size())});
    store_big_endian(piece.head.data() + structured_reply_bytes, piece.offset_bytes);
    request.answered = over;
    queue(piece);
  } else if (over && request.flush_at_end && request.error == WireError::none &&
             !replies_dropped_) {
    request.flush_at_end = false;
    piece.buffer.reset();
    piece.operation = BlockOperation::flush;
    piece.data = {};
    piece.offset_bytes = 0;
    submit(piece, 0);
    port_->flush();
  } else if (over) {
    finish_whole(request, piece);
  } else if (request.unsent.empty()) {
    free_piece(piece);  // the last one carries the reply
  }
}

// Nothing of the request is at the disk any more: answers it as a whole. `last` carries the reply,
// unless the request has pieces in order.
void Transmission::finish_whole(Request& request, Piece& last) {
  request.answered = true;
  if (request.unsent.empty()) {
    last.buffer.reset();
    last.body = {};
    if (request.error != WireError::none) {
      queue_error(last);
      return;
    }
    last.head_bytes = simple_reply_bytes;
    encode_simple_reply(std::span(last.head).first<simple_reply_bytes>(),
                        {WireError::none, request.header.cookie});
    queue(last);
    return;
  }
  Piece& first = request.unsent.pop();
  if (request.error != WireError::none) {
    while (!request.unsent.empty()) free_piece(request.unsent.pop());
    queue_error(first);
    return;
  }
  if (structured_) {
    first.head_bytes = static_cast<uint32_t>(first.head.size());
    encode_structured_reply(
        std::span(first.head).first<structured_reply_bytes>(),
        {true, Chunk::offset_data, request.header.cookie,
         static_cast<uint32_t>(chunk_offset_bytes + request.header.length_bytes)});
    store_big_endian(first.head.data() + structured_reply_bytes, request.header.offset_bytes);
  } else {
    first.head_bytes = simple_reply_bytes;
    encode_simple_reply(std::span(first.head).first<simple_reply_bytes>(),
                        {WireError::none, request.header.cookie});
  }
  first.body = first.data;
  PieceQueue rest = std::exchange(request.unsent, {});
  queue(first);
  while (!rest.empty()) {
    Piece& piece = rest.pop();
    piece.head_bytes = 0;
    piece.body = piece.data;
    queue(piece);
  }
}

void Transmission::queue_error(Piece& piece) {
  const Request& request = *piece.request;
  piece.buffer.reset();
  piece.body = {};
  if (structured_) {
    piece.head_bytes = structured_reply_bytes + chunk_error_bytes;
    piece.body = as_bytes(request.reason);
    encode_structured_reply(std::span(piece.head).first<structured_reply_bytes>(),
                            {true, Chunk::error, request.header.cookie,
                             static_cast<uint32_t>(chunk_error_bytes + piece.body.size())});
    ByteWriter(std::span(piece.head).subspan<structured_reply_bytes, chunk_error_bytes>())
        .u32(static_cast<uint32_t>(request.error))
        .u16(static_cast<uint16_t>(piece.body.size()));
  } else {
    piece.head_bytes = simple_reply_bytes;
    encode_simple_reply(std::span(piece.head).first<simple_reply_bytes>(),
                        {request.error, request.header.cookie});
  }
  queue(piece);
}

void Transmission::queue(Piece& piece) {
  reactor_.defer(progress_);
  if (replies_dropped_) {
    free_piece(piece);
  } else {
    to_send_.push(piece);
  }
}

size_t Transmission::gather(std::span<iovec> parts) const {
  size_t count = 0;
  size_t skip = sent_of_first_;
  for (Piece* piece = to_send_.first; piece != nullptr && count + 2 <= parts.size();
       piece = piece->next) {
    if (skip < piece->head_bytes) {
      parts[count++] = {piece->head.data() + skip, piece->head_bytes - skip};
      skip = 0;
    } else {
      skip -= piece->head_bytes;
    }
    if (skip < piece->body.size()) {
      const ConstBytes body = piece->body.subspan(skip);
      parts[count++] = {const_cast<std::byte*>(body.data()), body.size()};
    }
    skip = 0;
  }
  return count;
}

void Transmission::sent(size_t bytes) {
  bytes += sent_of_first_;
  while (!to_send_.empty() && bytes >= to_send_.first->bytes_to_send()) {
    bytes -= to_send_.first->bytes_to_send();
    free_piece(to_send_.pop());
  }
  sent_of_first_ = bytes;
}

void Transmission::drop_replies() {
  replies_dropped_ = true;
  sent_of_first_ = 0;
  while (!to_send_.empty()) free_piece(to_send_.pop());
}

}  // namespace vjbod::initiator::nbd
