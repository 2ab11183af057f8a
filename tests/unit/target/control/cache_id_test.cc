// SPDX-License-Identifier: Apache-2.0
#include "target/control/cache_id.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

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

TEST(CacheId, TheKernelHasAnId) {
  EXPECT_EQ(kernel_boot_id().size(), 36U);
  EXPECT_EQ(kernel_boot_id(), kernel_boot_id());
}

TEST(CacheId, AFileWithoutAUuidIsNoId) {
  test::TempDir dir;
  EXPECT_EQ(kernel_boot_id(dir / "none"), "");
  std::ofstream(dir / "id") << "not an id\n";
  EXPECT_EQ(kernel_boot_id(dir / "id"), "");
  std::ofstream(dir / "id") << boot << "\n";
  EXPECT_EQ(kernel_boot_id(dir / "id"), boot);
}

}  // namespace
}  // namespace vjbod::target
