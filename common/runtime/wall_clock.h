// SPDX-License-Identifier: Apache-2.0
// The time of day, for what is shown to people or kept in state files; never to measure with.
#pragma once

#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/runtime/clock.h"

namespace vjbod {

WallTime wall_now();
std::string rfc3339(WallTime time);                     // "2026-11-03T08:15:30Z"
Result<WallTime> parse_rfc3339(std::string_view text);  // what rfc3339() gives

}  // namespace vjbod
