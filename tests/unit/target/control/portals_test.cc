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

TEST(Portals, IserIsSpokenWhereItIsWantedAndAnRdmaDeviceHasTheAddress) {
  net::Interface rdma = interface("eth0", {{"10.0.0.1", 24}, {"10.0.0.2", 24}});
  rdma.rdma.emplace();
  rdma.rdma->device = "rxe0";
  rdma.rdma->link_up = true;
  rdma.addresses[0].rdma_type = "RoCE v2";
  const std::vector<net::Interface> interfaces = {rdma, interface("eth1", {{"10.0.1.1", 24}})};
  std::vector<ReachablePortal> portals = {
      {"10.0.0.1", 3260}, {"10.0.0.2", 3260}, {"10.0.1.1", 3260}, {"10.0.0.1", 3261}};

  mark_transports({{"::", 3260, true, true}, {"10.0.0.1", 3261, true, false}}, interfaces, portals);

  EXPECT_TRUE(portals[0].iser);
  EXPECT_FALSE(portals[1].iser);  // an address that the device does not know
  EXPECT_FALSE(portals[2].iser);
  EXPECT_FALSE(portals[3].iser);  // not wanted
  EXPECT_TRUE(portals[3].iscsi);
}

}  // namespace
}  // namespace vjbod::target
