// SPDX-License-Identifier: Apache-2.0
#include "common/transport/iser/receive_ring.h"

#include <span>
#include <utility>

#include "common/base/check.h"
#include "common/transport/rdma_errc.h"

namespace vjbod::transport {

Status ReceiveRing::add(rdma::Domain& domain, size_t count) {
  const size_t before = memory_.size();
  if (Status added = memory_.add(domain, count, message_bytes_); !added) return added;
  for (size_t id = before; id < memory_.size(); ++id)
    if (Status posted = repost(id); !posted) return posted;
  return flush();
}

Result<ConstBytes> ReceiveRing::message(uint64_t id, uint32_t bytes) const {
  VJBOD_CHECK(id < memory_.size(), "a receive completed that was never posted");
  const MessageMemory::Slot& slot = memory_[id];
  if (bytes > slot.memory.size()) {
    return fail(RdmaErrc::bad_length, "a message of {} bytes in a buffer of {}", bytes,
                slot.memory.size());
  }
  return ConstBytes(slot.memory.first(bytes));
}

Status ReceiveRing::repost(uint64_t id) {
  const MessageMemory::Slot& slot = memory_[id];
  batch_[batch_size_++] = {.id = id, .memory = slot.memory, .local_key = slot.local_key};
  return batch_size_ == batch_max ? flush() : Status{};
}

Status ReceiveRing::flush() {
  if (batch_size_ == 0) return {};
  const auto batch = std::span(batch_).first(std::exchange(batch_size_, 0));
  if (Status posted = connection_.post_receives(batch); !posted) return posted;
  posted_ += batch.size();
  return {};
}

}  // namespace vjbod::transport
