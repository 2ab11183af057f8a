// SPDX-License-Identifier: Apache-2.0
// The messages of one connection on their way out: slots for those with little data (responses) and
// for those with much (commands with immediate data, text), and a queue for what finds no slot.
// Allocates only while that queue grows to its working size.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/transport/iser/message.h"
#include "common/transport/iser/message_memory.h"
#include "common/transport/tcp/ring_queue.h"

namespace vjbod::transport {

class MessagePool {
 public:
  static constexpr uint32_t small_data_bytes = 128;

  struct Slot {
    uint32_t number = 0;
    Bytes memory;
    uint32_t local_key = 0;
  };
  // A message that waits for a slot.
  struct Waiting {
    std::array<std::byte, message_header_bytes> headers{};
    std::vector<std::byte> data;
    uint32_t task = 0;                      // of a SCSI Command
    std::optional<uint32_t> invalidates{};  // the peer's key
    void reset() { data.clear(); }
  };

  explicit MessagePool(uint32_t data_bytes_max) : data_bytes_max_(data_bytes_max) {}

  Status add(rdma::Domain& domain, size_t small_count, size_t large_count);
  // A free slot for this much data.
  std::optional<Slot> take(size_t data_bytes);
  void give_back(uint32_t number);

  Waiting& wait() { return waiting_.push_back(); }
  bool anybody_waits() const { return !waiting_.empty(); }
  size_t waiting_count() const { return waiting_.size(); }
  Waiting& first_waiting() { return waiting_.front(); }
  void pop_waiting() { waiting_.pop_front(); }
  // Slots that are taken.
  size_t under_way() const { return memory_.size() - free_small_.size() - free_large_.size(); }
  void clear();

 private:
  bool is_small(uint32_t number) const {
    return memory_[number].memory.size() <= message_header_bytes + small_data_bytes;
  }
  std::optional<Slot> take_from(std::vector<uint32_t>& free);

  const uint32_t data_bytes_max_;
  MessageMemory memory_;
  std::vector<uint32_t> free_small_, free_large_;
  RingQueue<Waiting> waiting_;
};

}  // namespace vjbod::transport
