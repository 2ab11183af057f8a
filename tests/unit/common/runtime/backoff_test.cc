// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/backoff.h"

#include <gtest/gtest.h>

namespace vjbod {
namespace {

using namespace std::chrono_literals;

TEST(Backoff, BeginsQuicklyThenDoublesUpToTheLongest) {
  Random random(1);
  Backoff backoff({});
  const Duration steps[] = {100ms, 1s, 2s, 4s, 8s, 16s, 30s, 30s};

  for (Duration step : steps) {
    const Duration wait = backoff.next(random);
    EXPECT_LE(wait, step);
    EXPECT_GE(wait, step * 3 / 4);
  }
}

TEST(Backoff, BeginsAnewAfterAReset) {
  Random random(1);
  Backoff backoff({});
  for (int i = 0; i < 5; ++i) backoff.next(random);

  backoff.reset();

  EXPECT_LE(backoff.next(random), 100ms);
}

TEST(Backoff, SpreadsEqualDisks) {
  Random random(1);
  Backoff first({}), second({});

  EXPECT_NE(first.next(random), second.next(random));
}

}  // namespace
}  // namespace vjbod
