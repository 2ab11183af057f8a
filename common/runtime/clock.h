// SPDX-License-Identifier: Apache-2.0
// Time as every component sees it. Nobody outside this folder reads a clock; they ask their reactor
// for now().
#pragma once

#include <chrono>

namespace vjbod {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;  // monotonic
using WallTime =
    std::chrono::system_clock::time_point;  // only to be shown to people and stored in state files

}  // namespace vjbod
