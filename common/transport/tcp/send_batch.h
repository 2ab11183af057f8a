// SPDX-License-Identifier: Apache-2.0
// The PDUs of one gathered write: headers and trailers in a small arena, payload where it lies.
// Pure; one connection's, on its thread. What is built is sent whole, however many writes that
// takes, before the next batch is built, so nothing here moves while the socket holds part of it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <sys/uio.h>

#include "common/base/bytes.h"
#include "common/iscsi/framer.h"
#include "common/transport/data_mover.h"

namespace vjbod::transport {

class SendBatch {
 public:
  static constexpr size_t pdus_max = 128;  // at most three pieces each; Linux takes 1024
  static constexpr size_t pieces_max = 3 * pdus_max;
  // Enough for the wire to be busy while the next batch is built; little enough that a transfer
  // does not wait long for the ones behind it to be told as done.
  static constexpr size_t payload_max_bytes = size_t{512} << 10;
  // Payload up to this size is copied beside its header: cheaper than a piece of its own.
  static constexpr size_t inline_payload_max_bytes = 256;

  bool full() const { return pdus_ == pdus_max || payload_bytes_ >= payload_max_bytes; }
  bool empty() const { return pieces_ == 0; }

  // `header` is complete, `trailer` is padding and digest. `owner`: the task whose lent memory
  // `payload` is in, or no_task when it is not lent.
  void add(ConstBytes header, ConstBytes payload, ConstBytes trailer, TaskHandle owner);
  // Memory that payload was in, and that is to stay until the batch is sent.
  void keep(std::unique_ptr<std::byte[]> memory) { kept_.push_back(std::move(memory)); }
  // `task` is told as done when the batch is sent.
  void add_done(TaskHandle task) { done_.push_back(task); }
  // The task's lent memory goes back now: what is not sent of it is copied, and it is not told as
  // done.
  void give_back(TaskHandle task);

  std::span<const iovec> unsent() const {
    return {iovecs_.data() + first_piece_, pieces_ - first_piece_};
  }
  void sent(size_t bytes);
  bool all_sent() const { return first_piece_ == pieces_; }
  std::span<const TaskHandle> done() const { return done_; }
  void clear();

 private:
  static constexpr size_t arena_bytes =
      pdus_max * (iscsi::header_and_digest_bytes + iscsi::trailer_bytes_max) +
      pdus_max * inline_payload_max_bytes;

  void add_piece(ConstBytes bytes, TaskHandle owner);
  void add_copied(ConstBytes bytes);

  // Allocated with the first PDU.
  std::unique_ptr<std::array<std::byte, arena_bytes>> arena_;
  size_t arena_used_ = 0;
  std::array<iovec, pieces_max> iovecs_;
  std::array<TaskHandle, pieces_max> owners_;
  size_t pieces_ = 0;
  size_t first_piece_ = 0;  // not sent yet
  size_t pdus_ = 0;
  size_t payload_bytes_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> kept_;
  std::vector<TaskHandle> done_;
};

}  // namespace vjbod::transport
