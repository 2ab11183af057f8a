// SPDX-License-Identifier: Apache-2.0
#include "target/control/portals.h"

#include <gtest/gtest.h>

namespace vjbod::target {
namespace {

net::Interface interface(std::string name, std::vector<net::InterfaceAddress> addresses) {
  net::Interface result;
  result.name = std::move(name);
  result.up = true;
  result.addresses = std::move(addresses);
  return result;
}

std::vector<net::Interface> two_interfaces() {
  std::vector<net::Interface> result = {
      interface("lo", {{"127.0.0.1", 8}, {"::1", 128}}),
      interface("eth0", {{"fe80::1", 64, true}, {"fd00::1", 64}, {"10.0.0.1", 24}}),
      interface("eth1", {{"10.0.1.1", 24}})};
  result[0].loopback = true;
  return result;
}

using Portals = std::vector<ReachablePortal>;

TEST(ReachablePortals, AnyAddressStandsForAllThatCanBeReached) {
  EXPECT_EQ(reachable_portals({{"::", 3260}}, two_interfaces()),
            (Portals{{"10.0.0.1", 3260}, {"10.0.1.1", 3260}, {"fd00::1", 3260}}));
}

TEST(ReachablePortals, AnyIpv4AddressGivesNoIpv6) {
  EXPECT_EQ(reachable_portals({{"0.0.0.0", 1}}, two_interfaces()),
            (Portals{{"10.0.0.1", 1}, {"10.0.1.1", 1}}));
}

TEST(ReachablePortals, InterfacesThatAreDownDoNotCount) {
  auto interfaces = two_interfaces();
  interfaces[1].up = false;
  EXPECT_EQ(reachable_portals({{"::", 1}}, interfaces), (Portals{{"10.0.1.1", 1}}));
}

TEST(ReachablePortals, AnAddressOfItsOwnIsTakenAsItIs) {
  EXPECT_EQ(reachable_portals({{"127.0.0.1", 1}, {"10.0.0.1", 2}}, two_interfaces()),
            (Portals{{"127.0.0.1", 1}, {"10.0.0.1", 2}}));
}

TEST(ReachablePortals, LoopbackIsTheLastResort) {
  auto interfaces = two_interfaces();
  interfaces.resize(1);
  EXPECT_EQ(reachable_portals({{"::", 1}}, interfaces), (Portals{{"127.0.0.1", 1}, {"::1", 1}}));
}

TEST(ReachablePortals, NothingIsListedTwice) {
  EXPECT_EQ(reachable_portals({{"0.0.0.0", 1}, {"10.0.0.1", 1}}, two_interfaces()).size(), 2U);
}

}  // namespace
}  // namespace vjbod::target
