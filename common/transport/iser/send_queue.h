// SPDX-License-Identifier: Apache-2.0
// The send queue of one connection: requests in order, posted in batches as far as the queue has
// room, and what each one's completion means. Of a batch only the last request, and those somebody
// waits for, report; a report ends everything before it, since requests complete in order.
#pragma once

#include <array>
#include <cstdint>

#include "common/transport/iser/verbs_api.h"
#include "common/transport/tcp/ring_queue.h"

namespace vjbod::transport {

class SendQueue {
 public:
  // What is over when a request has completed.
  enum class Then : uint8_t {
    nothing,
    message,       // value: slot of the message
    transfer,      // value: task; one request of its transfer
    invalidation,  // value: task
  };
  struct Done {
    Then then = Then::nothing;
    uint32_t value = 0;
  };

  SendQueue(rdma::Connection& connection, size_t depth) : connection_(connection), depth_(depth) {}

  // Returns the request's number; numbers grow by one.
  uint64_t queue(const rdma::SendRequest& request, Done done, bool report);
  // Posts what there is room for.
  Status post();
  // Whether the request with this number was handed to the device.
  bool is_posted(uint64_t number) const { return number < first_waiting_; }

  // A completion with this id came: the next request that is over with it, in order; false when
  // there is none left.
  bool next_done(uint64_t id, Done& done);
  // Takes away what of a task's transfer is not posted yet; how many requests that were.
  size_t drop_transfer(uint32_t task);

  size_t posted() const { return posted_.size(); }
  size_t waiting() const { return waiting_.size(); }

 private:
  static constexpr size_t batch_max = 32;
  struct Entry {
    rdma::SendRequest request;
    Done done;
    bool dropped = false;
    void reset() {}
  };
  struct Posted {
    uint64_t number = 0;
    Done done;
    void reset() {}
  };

  rdma::Connection& connection_;
  const size_t depth_;
  RingQueue<Entry> waiting_;
  RingQueue<Posted> posted_;
  uint64_t first_waiting_ = 1;  // its number
  std::array<rdma::SendRequest, batch_max> batch_;
};

}  // namespace vjbod::transport
