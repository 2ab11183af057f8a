// SPDX-License-Identifier: Apache-2.0
// Registered memory for the messages of one connection: slots of one size, each laid out so that a
// message's data begins on a 512-byte boundary (what disks and their caches like).
#pragma once

#include <memory>
#include <vector>

#include "common/iscsi/pdu.h"
#include "common/transport/iser/iser_wire.h"
#include "common/transport/iser/verbs_api.h"

namespace vjbod::transport {

inline constexpr size_t message_header_bytes = iser_header_bytes + iscsi::bhs_bytes;

class MessageMemory {
 public:
  struct Slot {
    Bytes memory;  // of one message, headers first
    uint32_t local_key = 0;
  };

  // Adds `count` slots for messages of up to `message_bytes`, headers included.
  Status add(rdma::Domain& domain, size_t count, size_t message_bytes);
  // Gives everything back; nothing may be posted any more.
  void clear();

  size_t size() const { return slots_.size(); }
  const Slot& operator[](size_t index) const { return slots_[index]; }

 private:
  struct Unmap {
    size_t bytes = 0;
    void operator()(std::byte* memory) const;
  };
  struct Block {
    std::unique_ptr<std::byte, Unmap> memory;
    std::unique_ptr<rdma::Region> region;  // goes first
  };
  std::vector<Block> blocks_;
  std::vector<Slot> slots_;
};

}  // namespace vjbod::transport
