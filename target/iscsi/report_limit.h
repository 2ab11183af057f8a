// SPDX-License-Identifier: Apache-2.0
// Keeps what one peer does again and again from filling the log: a few reports in a window of time,
// and the first of a later window says how many were left out. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/runtime/clock.h"

namespace vjbod::target {

class ReportLimit {
 public:
  static constexpr uint32_t reports_max = 5;
  static constexpr Duration window = std::chrono::seconds(60);

  // Nothing: leave this one out. Else how many were left out before it.
  std::optional<uint64_t> next(TimePoint now);
  // Whether next() would begin a new window with nothing to tell.
  bool idle(TimePoint now) const { return left_out_ == 0 && now - began_ >= window; }

 private:
  TimePoint began_{};
  uint32_t reports_ = 0;
  uint64_t left_out_ = 0;
};

// To be put behind a report; empty when nothing was left out.
std::string left_out_text(uint64_t left_out);

}  // namespace vjbod::target
