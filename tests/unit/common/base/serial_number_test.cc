// SPDX-License-Identifier: Apache-2.0
#include "common/base/serial_number.h"

#include <gtest/gtest.h>

namespace vjbod {
namespace {

constexpr SerialNumber last{0xffffffff};
constexpr SerialNumber zero{0};

TEST(SerialNumber, IsAheadAcrossTheWrap) {
  EXPECT_LT(last, zero);
  EXPECT_GT(zero, last);
  EXPECT_LE(last, last);
  EXPECT_GE(zero, last);
  EXPECT_EQ(last + 1, zero);
  EXPECT_EQ(zero - 1, last);
}

TEST(SerialNumber, StepsAcrossTheWrap) {
  SerialNumber number = last;
  EXPECT_EQ(++number, zero);
}

TEST(SerialNumber, MeasuresDistancesWithTheirSign) {
  EXPECT_EQ(SerialNumber(5).distance_from(last), 6);
  EXPECT_EQ(last.distance_from(SerialNumber(5)), -6);
}

TEST(SerialNumber, LooksHalfACircleAheadAndNoFurther) {
  EXPECT_GT(SerialNumber(0x7fffffff), zero);
  EXPECT_LT(SerialNumber(0x80000001), zero);
}

}  // namespace
}  // namespace vjbod
