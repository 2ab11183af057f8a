// SPDX-License-Identifier: Apache-2.0
#include "common/net/route.h"

#include <gtest/gtest.h>

namespace vjbod::net {
namespace {

TEST(Route, TheWayToThisBoxBeginsHere) {
  EXPECT_EQ(source_address_towards("127.0.0.1", ""), "127.0.0.1");
}

TEST(Route, WithoutAWayThereIsNoAddress) {
  EXPECT_EQ(source_address_towards("not an address", ""), "");
  EXPECT_EQ(source_address_towards("127.0.0.1", "no-such-if"), "");
}

}  // namespace
}  // namespace vjbod::net
