// SPDX-License-Identifier: Apache-2.0
// The receives of one connection: posted buffers, and those whose message is still looked at. A
// few from the start, for the login; the rest when it is over, before the peer may send more.
#pragma once

#include <array>
#include <cstdint>

#include "common/transport/iser/message_memory.h"
#include "common/transport/iser/verbs_api.h"

namespace vjbod::transport {

class ReceiveRing {
 public:
  ReceiveRing(rdma::Connection& connection, size_t message_bytes)
      : connection_(connection), message_bytes_(message_bytes) {}

  // Posts `count` more.
  Status add(rdma::Domain& domain, size_t count);
  // One has completed. The message's bytes stay where they are until repost().
  void completed() { --posted_; }
  // `id` is the completion's; `bytes` what came. An error: more than was posted, or no such buffer.
  Result<ConstBytes> message(uint64_t id, uint32_t bytes) const;
  // The message is dealt with. Leaves with flush().
  Status repost(uint64_t id);
  Status flush();

  // Posted to the queue now.
  size_t posted() const { return posted_; }
  void clear() { memory_.clear(); }

 private:
  static constexpr size_t batch_max = 32;

  rdma::Connection& connection_;
  const size_t message_bytes_;
  MessageMemory memory_;
  std::array<rdma::ReceiveRequest, batch_max> batch_;
  size_t batch_size_ = 0;
  size_t posted_ = 0;
};

}  // namespace vjbod::transport
