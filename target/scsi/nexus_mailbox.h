// SPDX-License-Identifier: Apache-2.0
// How a logical unit reaches a nexus on another shard, also one that is just going away: messages
// are posted to the nexus's reactor, and dropped there when the nexus has closed its mailbox.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "common/runtime/reactor.h"

namespace vjbod::scsi {

class LogicalUnit;
struct Management;

// Held by everybody who has still to finish with a reset; when the last one lets go, the nexus that
// asked for it is told. A message that is dropped lets go, too.
class ResetBarrier {
 public:
  explicit ResetBarrier(std::function<void()> on_released) : on_released_(std::move(on_released)) {}
  ~ResetBarrier() { on_released_(); }
  ResetBarrier(const ResetBarrier&) = delete;
  ResetBarrier& operator=(const ResetBarrier&) = delete;

 private:
  std::function<void()> on_released_;
};

// What a nexus is told, on its own thread.
class NexusMessages {
 public:
  // Another nexus has reset the unit.
  virtual void on_unit_reset(LogicalUnit& unit, std::shared_ptr<ResetBarrier> barrier) = 0;
  // The unit's size may have changed.
  virtual void on_capacity_changed(LogicalUnit& unit) = 0;
  // Every other nexus has finished with the reset that this one asked for.
  virtual void on_others_reset(Management& request) = 0;

 protected:
  ~NexusMessages() = default;
};

class NexusMailbox : public std::enable_shared_from_this<NexusMailbox> {
 public:
  NexusMailbox(Reactor& reactor, NexusMessages& receiver)
      : reactor_(reactor), receiver_(&receiver) {}

  // Any thread.
  void post(std::function<void(NexusMessages&)> message) {
    reactor_.post([self = shared_from_this(), message = std::move(message)] {
      if (self->receiver_ != nullptr) message(*self->receiver_);
    });
  }
  // On the nexus's thread: nothing is delivered any more.
  void close() { receiver_ = nullptr; }

 private:
  Reactor& reactor_;
  NexusMessages* receiver_;  // the nexus's thread only
};

}  // namespace vjbod::scsi
