// SPDX-License-Identifier: Apache-2.0
#include "common/base/boot_id.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace vjbod {
namespace {

constexpr const char* boot = "3f2b0c3e-0000-4000-8000-0123456789ab";

TEST(BootId, TheKernelHasOne) {
  EXPECT_EQ(kernel_boot_id().size(), boot_id_bytes);
  EXPECT_EQ(kernel_boot_id(), kernel_boot_id());
}

TEST(BootId, AFileWithoutAUuidIsNoId) {
  test::TempDir dir;
  EXPECT_EQ(kernel_boot_id(dir / "none"), "");
  for (const char* wrong : {"not an id", "3f2b0c3e00000-4000-8000-0123456789ab",
                            "3F2b0c3e-0000-4000-8000-0123456789ab"}) {
    std::ofstream(dir / "id") << wrong << "\n";
    EXPECT_EQ(kernel_boot_id(dir / "id"), "") << wrong;
  }
  std::ofstream(dir / "id") << boot << "\n";
  EXPECT_EQ(kernel_boot_id(dir / "id"), boot);
}

}  // namespace
}  // namespace vjbod
