// SPDX-License-Identifier: Apache-2.0
// Hands small objects from one reactor's thread to another's in batches, without a lock and without
// allocation: the only way other than post() that work crosses shards, for I/O requests that must
// not pay for a post each. A stack in one atomic word: the sender pushes a chain, the receiver
// takes all. One wake-up per batch: it is posted by the push that finds the stack empty, and the
// receiver empties the stack before anything can find it empty again.
#pragma once

#include <atomic>

#include "common/runtime/asio_reactor.h"
#include "common/runtime/handler_memory.h"

namespace vjbod {

// Derive what is to be handed over from this. On at most one handover at a time.
struct HandoverNode {
  HandoverNode* handover_next = nullptr;
};

class HandoverReceiver {
 public:
  // On the receiving thread, in the order of add(). The node is the receiver's from here on.
  virtual void on_handed_over(HandoverNode& node) = 0;

 protected:
  ~HandoverReceiver() = default;
};

class Handover {
 public:
  // `receiver` is called on the thread of `reactor`. Both outlive this object, and it must be
  // destroyed only when nothing is on its way: after a post() to `reactor` made by the sender after
  // its last send() has run.
  Handover(AsioReactor& reactor, HandoverReceiver& receiver)
      : reactor_(reactor), receiver_(receiver) {}
  ~Handover();
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;

  // Sending thread. Collects; nothing is seen on the other side before send().
  void add(HandoverNode& node);
  void send();

 private:
  struct WakeUp;
  void receive();

  AsioReactor& reactor_;
  HandoverReceiver& receiver_;
  // The sender's: newest first.
  HandoverNode* newest_ = nullptr;
  HandoverNode* oldest_ = nullptr;
  // Crosses: newest first. Not empty means that a wake-up is on its way.
  std::atomic<HandoverNode*> handed_ = nullptr;
  HandlerMemory wake_up_memory_;
};

}  // namespace vjbod
