// SPDX-License-Identifier: Apache-2.0
// How long a call took that should not wait, but might: the reactor's now() stands still during a
// turn and cannot tell. For nothing else; simulated code must not depend on it.
#pragma once

#include "common/runtime/clock.h"

namespace vjbod {

class Stopwatch {
 public:
  Duration elapsed() const { return std::chrono::steady_clock::now() - start_; }

 private:
  TimePoint start_ = std::chrono::steady_clock::now();
};

}  // namespace vjbod
