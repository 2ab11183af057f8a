// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/backoff.h"

#include <algorithm>

namespace vjbod {

Duration Backoff::next(Random& random) {
  if (step_ == Duration::zero()) {
    step_ = limits_.first;
  } else if (step_ < limits_.second) {
    step_ = limits_.second;
  } else {
    step_ = std::min(step_ * 2, limits_.longest);
  }
  const Duration jitter = step_ / 4;
  if (jitter <= Duration::zero()) return step_;
  return step_ - Duration(random.below(static_cast<uint64_t>(jitter.count()) + 1));
}

}  // namespace vjbod
