// SPDX-License-Identifier: Apache-2.0
// The slots of nbd_transmission: a client's request and its pieces. For nbd_transmission*.cc only.
#pragma once

#include <array>

#include "initiator/frontend/nbd_transmission.h"

namespace vjbod::initiator::nbd {

struct Transmission::Request {
  RequestHeader header;
  // Bytes given to the disk (read), received and given (write), skipped (refused write).
  uint32_t progress_bytes = 0;
  bool all_submitted = false;
  bool answered = false;      // nothing more will be queued for it
  bool flush_at_end = false;  // once for all pieces, where each would need a flush of its own
  uint32_t at_disk = 0;       // pieces
  uint32_t pieces_held = 0;   // at the disk or waiting to be sent
  WireError error = WireError::none;
  std::string_view reason;
  PieceQueue unsent;  // read that is answered as a whole: its pieces in order
  Request* next_free = nullptr;

  bool over() const { return all_submitted && at_disk == 0; }
};

struct Transmission::Piece : PortRequest {
  Request* request = nullptr;
  Piece* next = nullptr;  // on the free list, in unsent or in to_send_
  Buffer buffer;
  uint32_t filled_bytes = 0;  // of a write
  // What is sent for it: head, then body.
  uint32_t head_bytes = 0;
  std::array<std::byte, structured_reply_bytes + chunk_offset_bytes> head;
  ConstBytes body;

  size_t bytes_to_send() const { return head_bytes + body.size(); }
};

}  // namespace vjbod::initiator::nbd
