// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/handover.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "common/base/check.h"

namespace vjbod {

struct Handover::WakeUp {
  using allocator_type = HandlerAllocator<>;
  allocator_type get_allocator() const { return allocator_type(handover->wake_up_memory_); }
  void operator()() const { handover->receive(); }

  Handover* handover;
};

Handover::~Handover() {
  VJBOD_CHECK(newest_ == nullptr && handed_ == nullptr, "something is still being handed over");
}

void Handover::add(HandoverNode& node) {
  node.handover_next = newest_;
  if (newest_ == nullptr) oldest_ = &node;
  newest_ = &node;
}

void Handover::send() {
  if (newest_ == nullptr) return;
  HandoverNode* before = handed_.load(std::memory_order_relaxed);
  // Release: the nodes' contents. Acquire: when `before` is empty, the receiver has taken the last
  // batch, so Asio is done with wake_up_memory_.
  do {
    oldest_->handover_next = before;
  } while (!handed_.compare_exchange_weak(before, newest_, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
  newest_ = oldest_ = nullptr;
  if (before == nullptr) boost::asio::post(reactor_.io_context(), WakeUp{this});
}

void Handover::receive() {
  HandoverNode* newest = handed_.exchange(nullptr, std::memory_order_acq_rel);
  HandoverNode* in_order = nullptr;
  while (newest != nullptr) {
    HandoverNode* next = newest->handover_next;
    newest->handover_next = in_order;
    in_order = newest;
    newest = next;
  }
  while (in_order != nullptr) {
    HandoverNode& node = *in_order;
    in_order = node.handover_next;
    receiver_.on_handed_over(node);
  }
}

}  // namespace vjbod
