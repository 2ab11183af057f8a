// SPDX-License-Identifier: Apache-2.0
#include "target/iscsi/report_limit.h"

#include <utility>

#include <fmt/format.h>

namespace vjbod::target {

std::optional<uint64_t> ReportLimit::next(TimePoint now) {
  if (reports_ == 0 || now - began_ >= window) {
    began_ = now;
    reports_ = 0;
  }
  if (reports_ == reports_max) {
    ++left_out_;
    return std::nullopt;
  }
  ++reports_;
  return std::exchange(left_out_, 0);
}

std::string left_out_text(uint64_t left_out) {
  return left_out == 0 ? std::string() : fmt::format(" ({} more before it left out)", left_out);
}

}  // namespace vjbod::target
