// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/interface_ranking.h"

#include <gtest/gtest.h>

namespace vjbod::initiator {
namespace {

RankedInterface interface(std::string name, std::string address) {
  RankedInterface one;
  one.name = std::move(name);
  one.addresses = {{std::move(address), 24}};
  one.mtu = 1500;
  one.speed_mbps = 10000;
  one.up = true;
  return one;
}

TEST(InterfaceRanking, PairsOfOneSubnetAreUsableAndOthersSayWhyNot) {
  const auto pairs =
      rank_interface_pairs({interface("eth0", "10.0.0.1"), interface("eth1", "10.0.1.1")},
                           {interface("eth0", "10.0.0.2")}, {});
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_TRUE(pairs[0].usable);
  EXPECT_EQ(pairs[0].host_address, "10.0.0.1");
  EXPECT_EQ(pairs[0].remote_address, "10.0.0.2");
  EXPECT_FALSE(pairs[1].usable);
  EXPECT_EQ(pairs[1].explanation, "not usable: no common subnet");
}

TEST(InterfaceRanking, RdmaAtBothEndsComesFirst) {
  auto a = interface("a", "10.0.0.1"), b = interface("b", "10.0.1.1");
  auto c = interface("c", "10.0.0.2"), d = interface("d", "10.0.1.2");
  b.rdma_device = "rxe_b";
  d.rdma_device = "rxe_d";
  a.speed_mbps = c.speed_mbps = 100000;
  const auto pairs = rank_interface_pairs({a, b}, {c, d}, {});
  EXPECT_EQ(pairs[0].host_interface, "b");
  EXPECT_TRUE(pairs[0].iser);
  EXPECT_EQ(pairs[1].iser_reason_code, "no-rdma-device");
}

TEST(InterfaceRanking, RdmaAtOneEndIsNotEnoughAndSaysWhichEndLacksIt) {
  auto a = interface("a", "10.0.0.1"), b = interface("b", "10.0.0.2");
  a.rdma_device = "rxe_a";
  const auto pairs = rank_interface_pairs({a}, {b}, {});
  EXPECT_FALSE(pairs[0].iser);
  EXPECT_EQ(pairs[0].iser_reason_code, "rdma-one-side");
  EXPECT_EQ(pairs[0].iser_reason_text, "no RDMA device on b of the peer");
}

TEST(InterfaceRanking, TheControlInterfaceIsTheLastChoiceAmongUsableOnes) {
  auto management = interface("mgmt", "10.0.0.1"), data = interface("data", "10.0.1.1");
  management.carries_control = true;
  management.speed_mbps = 100000;
  const auto pairs = rank_interface_pairs(
      {management, data}, {interface("mgmt", "10.0.0.2"), interface("data", "10.0.1.2")}, {});
  EXPECT_EQ(pairs[0].host_interface, "data");
  EXPECT_EQ(pairs[1].host_interface, "mgmt");
  EXPECT_TRUE(pairs[1].usable);
}

TEST(InterfaceRanking, EqualMtuComesBeforeSpeed) {
  auto fast = interface("fast", "10.0.0.1"), even = interface("even", "10.0.1.1");
  fast.mtu = 9000;
  fast.speed_mbps = 100000;
  auto fast_peer = interface("fast", "10.0.0.2");
  fast_peer.speed_mbps = 100000;
  const auto pairs =
      rank_interface_pairs({fast, even}, {fast_peer, interface("even", "10.0.1.2")}, {});
  EXPECT_EQ(pairs[0].host_interface, "even");
  EXPECT_EQ(pairs[1].explanation,
            "same subnet, MTU differs (9000 here, 1500 there), 100000 Mbit/s");
}

TEST(InterfaceRanking, TheUsersWishIsObeyed) {
  const std::vector<RankedInterface> host = {interface("a", "10.0.0.1"),
                                             interface("b", "10.0.1.1")};
  const std::vector<RankedInterface> remote = {interface("c", "10.0.0.2"),
                                               interface("d", "10.0.1.2")};
  const auto pairs =
      rank_interface_pairs(host, remote, {.host_interface = "b", .remote_interface = ""});
  EXPECT_EQ(pairs[0].host_interface, "b");
  EXPECT_TRUE(pairs[0].usable);
  for (size_t i = 1; i < pairs.size(); ++i) EXPECT_FALSE(pairs[i].usable);
}

TEST(InterfaceRanking, LinkLocalAddressesAndDownInterfacesAreNoWay) {
  auto down = interface("a", "10.0.0.1");
  down.up = false;
  EXPECT_FALSE(rank_interface_pairs({down}, {interface("b", "10.0.0.2")}, {})[0].usable);
  EXPECT_FALSE(
      rank_interface_pairs({interface("a", "169.254.0.1")}, {interface("b", "169.254.0.2")}, {})[0]
          .usable);
}

TEST(InterfaceRanking, SubnetsOfBothFamilies) {
  EXPECT_TRUE(same_subnet("10.0.0.1", "10.0.0.254", 24));
  EXPECT_FALSE(same_subnet("10.0.0.1", "10.0.1.1", 24));
  EXPECT_TRUE(same_subnet("2001:db8::1", "2001:db8::2", 64));
  EXPECT_FALSE(same_subnet("2001:db8::1", "10.0.0.1", 24));
  EXPECT_FALSE(same_subnet("10.0.0.1", "10.0.0.1", 33));
  EXPECT_FALSE(same_subnet("garbage", "10.0.0.1", 24));
}

}  // namespace
}  // namespace vjbod::initiator
