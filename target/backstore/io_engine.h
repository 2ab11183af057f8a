// SPDX-License-Identifier: Apache-2.0
// Carries out the system calls that may wait, without making the shard wait: through io_uring
// (uring_engine.h) or, where the kernel refuses that, through threads (thread_engine.h).
#pragma once

#include "target/backstore/medium.h"

namespace vjbod::backstore {

class StepClient {
 public:
  // On the reactor's thread, from its loop. `result`: a count or -errno.
  virtual void on_step_done(Op& op, int result) = 0;

 protected:
  ~StepClient() = default;
};

// Of one queue, on its reactor's thread. Destroyed only when no op is in it.
class IoEngine {
 public:
  virtual ~IoEngine() = default;
  // Carries out plan_step(op). The op is not on any list, and is the engine's until on_step_done().
  virtual void start(Op& op) = 0;
};

}  // namespace vjbod::backstore
