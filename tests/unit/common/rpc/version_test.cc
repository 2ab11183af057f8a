// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/version.h"

#include <gtest/gtest.h>

#include "common/rpc/errc.h"

namespace vjbod::rpc {
namespace {

TEST(Version, AnotherMinorVersionIsAccepted) {
  v1::VersionInfo theirs = our_version();
  theirs.set_protocol_minor(99);
  EXPECT_TRUE(check_version(theirs, "nas2"));
}

TEST(Version, AnotherMajorVersionIsRefused) {
  v1::VersionInfo theirs = our_version();
  theirs.set_protocol_major(2);
  theirs.set_version("2.0\n");
  Status status = check_version(theirs, "nas2");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::version);
  EXPECT_EQ(status.error().text.find('\n'), std::string::npos);
  EXPECT_FALSE(check_version(v1::VersionInfo(), "nas2"));
}

}  // namespace
}  // namespace vjbod::rpc
