// SPDX-License-Identifier: Apache-2.0
// How long to wait before the next try: quickly once, then doubling up to a limit, with jitter so
// that many disks do not knock at a restarted target in the same instant. Pure: the caller waits.
#pragma once

#include "common/base/random.h"
#include "common/runtime/clock.h"

namespace vjbod {

struct BackoffLimits {
  Duration first = std::chrono::milliseconds(100);  // before the first retry
  Duration second = std::chrono::seconds(1);        // before the second; doubled from there on
  Duration longest = std::chrono::seconds(30);
};

class Backoff {
 public:
  explicit Backoff(BackoffLimits limits) : limits_(limits) {}

  // Between three quarters of the current step and all of it.
  Duration next(Random& random);
  void reset() { step_ = Duration::zero(); }

 private:
  BackoffLimits limits_;
  Duration step_ = Duration::zero();  // of the last wait; zero before the first
};

}  // namespace vjbod
