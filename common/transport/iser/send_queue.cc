// SPDX-License-Identifier: Apache-2.0
#include "common/transport/iser/send_queue.h"

#include <span>

namespace vjbod::transport {

uint64_t SendQueue::queue(const rdma::SendRequest& request, Done done, bool report) {
  const uint64_t number = first_waiting_ + waiting_.size();
  Entry& entry = waiting_.push_back();
  entry.request = request;
  entry.request.id = number;
  entry.request.signaled = report;
  entry.done = done;
  entry.dropped = false;
  return number;
}

Status SendQueue::post() {
  while (!waiting_.empty()) {
    size_t count = 0;
    while (count < batch_max && !waiting_.empty() && posted_.size() < depth_) {
      const Entry& entry = waiting_.front();
      if (!entry.dropped) {
        batch_[count++] = entry.request;
        Posted& posted = posted_.push_back();
        posted.number = entry.request.id;
        posted.done = entry.done;
      }
      waiting_.pop_front();
      ++first_waiting_;
    }
    if (count == 0) return {};
    batch_[count - 1].signaled = true;
    if (Status sent = connection_.post_sends(std::span(batch_).first(count)); !sent) return sent;
  }
  return {};
}

bool SendQueue::next_done(uint64_t id, Done& done) {
  if (posted_.empty() || posted_.front().number > id) return false;
  done = posted_.front().done;
  posted_.pop_front();
  return true;
}

size_t SendQueue::drop_transfer(uint32_t task) {
  size_t count = 0;
  for (size_t i = 0; i < waiting_.size(); ++i) {
    Entry& entry = waiting_[i];
    if (entry.dropped || entry.done.then != Then::transfer || entry.done.value != task) continue;
    entry.dropped = true;
    ++count;
  }
  return count;
}

}  // namespace vjbod::transport
