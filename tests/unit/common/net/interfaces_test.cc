// SPDX-License-Identifier: Apache-2.0
#include "common/net/interfaces.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace vjbod::net {
namespace {

TEST(Interfaces, LoopbackIsAmongThemWithItsAddress) {
  Result<std::vector<Interface>> interfaces = list_interfaces();
  ASSERT_TRUE(interfaces) << interfaces.error().text;

  auto lo = std::find_if(interfaces->begin(), interfaces->end(),
                         [](const Interface& i) { return i.name == "lo"; });

  ASSERT_NE(lo, interfaces->end());
  EXPECT_TRUE(lo->loopback);
  EXPECT_GT(lo->mtu, 1000U);
  EXPECT_GT(lo->index, 0U);
  EXPECT_TRUE(
      std::any_of(lo->addresses.begin(), lo->addresses.end(), [](const InterfaceAddress& a) {
        return a.address == "127.0.0.1" && a.prefix_length == 8 && !a.link_local;
      }));
}

TEST(Interfaces, EachIsListedOnce) {
  Result<std::vector<Interface>> interfaces = list_interfaces();
  ASSERT_TRUE(interfaces);
  std::vector<std::string> names;
  for (const Interface& interface : *interfaces) names.push_back(interface.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace vjbod::net
