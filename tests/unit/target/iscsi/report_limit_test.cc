// SPDX-License-Identifier: Apache-2.0
#include "target/iscsi/report_limit.h"

#include <gtest/gtest.h>

namespace vjbod::target {
namespace {

TEST(ReportLimit, AFewReportsAWindowAndThenHowManyWereLeftOut) {
  ReportLimit limit;
  const TimePoint start{};
  for (uint32_t i = 0; i < ReportLimit::reports_max; ++i) EXPECT_EQ(limit.next(start), 0u);
  EXPECT_FALSE(limit.next(start));
  EXPECT_FALSE(limit.next(start + ReportLimit::window - std::chrono::seconds(1)));
  EXPECT_FALSE(limit.idle(start + ReportLimit::window)) << "something is still to be told";
  EXPECT_EQ(limit.next(start + ReportLimit::window), 2u);
  EXPECT_EQ(limit.next(start + ReportLimit::window), 0u);
  EXPECT_TRUE(limit.idle(start + 2 * ReportLimit::window));
}

TEST(ReportLimit, SaysNothingOfNothing) {
  EXPECT_EQ(left_out_text(0), "");
  EXPECT_EQ(left_out_text(7), " (7 more before it left out)");
}

}  // namespace
}  // namespace vjbod::target
