// SPDX-License-Identifier: Apache-2.0
// Finished ops on their way back to their owners. They are handed over once per loop turn, in
// batches, so that no owner is ever called from inside its own submit().
#pragma once

#include "target/backstore/backstore.h"

namespace vjbod::backstore {

// Embedded in a queue, on its reactor's thread.
class CompletionQueue final : public Deferred {
 public:
  explicit CompletionQueue(Reactor& reactor) : reactor_(reactor) {}
  ~CompletionQueue() {
    VJBOD_CHECK(!delivering_, "a backstore queue was destroyed from inside on_op_done()");
  }

  // `error_number`: an errno, or 0.
  void add(Op& op, int error_number) {
    op.notes.error_number = error_number;
    finished_.push_back(op);
    reactor_.defer(*this);
  }

  void run_deferred() override {
    IntrusiveList<Op, Op> batch;
    batch.append(finished_);
    delivering_ = true;
    while (!batch.empty()) {
      Op& op = batch.pop_front();
      int error_number = op.notes.error_number;
      op.owner->on_op_done(op, error_number == 0 ? std::error_code{} : system_code(error_number));
    }
    delivering_ = false;
  }

 private:
  Reactor& reactor_;
  IntrusiveList<Op, Op> finished_;
  bool delivering_ = false;
};

}  // namespace vjbod::backstore
