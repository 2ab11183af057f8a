// SPDX-License-Identifier: Apache-2.0
#include "target/control/cache_id.h"

#include <gtest/gtest.h>

namespace vjbod::target {
namespace {

constexpr const char* boot = "3f2b0c3e-0000-4000-8000-0123456789ab";
constexpr const char* instance = "11111111-1111-4111-8111-111111111111";

TEST(CacheId, WhatTheKernelHasIsLostWithTheKernel) {
  EXPECT_EQ(cache_id({}, boot, instance), boot);
}

TEST(CacheId, WhatOnlyTheProcessHasIsLostWithTheProcess) {
  backstore::BackstoreCapabilities memory;
  memory.outlives_process = false;
  EXPECT_EQ(cache_id(memory, boot, instance), instance);
}

TEST(CacheId, WithoutAKernelsIdEveryRestartCountsAsALoss) {
  EXPECT_EQ(cache_id({}, "", instance), instance);
}

}  // namespace
}  // namespace vjbod::target
