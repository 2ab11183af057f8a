// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/interface_ranking.h"

#include <gtest/gtest.h>

namespace vjbod::initiator {
namespace {

RankedInterface interface(std::string name, std::string address) {
  RankedInterface one;
  one.name = std::move(name);
  one.addresses = {{std::move(address), 24, {}}};
  one.mtu = 1500;
  one.speed_mbps = 10000;
  one.up = true;
  return one;
}

RankedInterface with_rdma(RankedInterface one, std::string device) {
  one.rdma.emplace();
  one.rdma->device = std::move(device);
  one.rdma->port = 1;
  one.rdma->link_up = true;
  one.rdma->link_state = "ACTIVE";
  one.addresses[0].rdma_type = "RoCE v2";
  return one;
}

// The peer serves both transports at each of its addresses.
std::vector<RankedPair> rank(const std::vector<RankedInterface>& host,
                             const std::vector<RankedInterface>& remote,
                             const InterfaceWishes& wishes = {}) {
  RankingInput input;
  input.peer = "nas2";
  input.host = host;
  input.remote = remote;
  input.wishes = wishes;
  for (const RankedInterface& one : remote)
    for (const RankedAddress& address : one.addresses)
      input.portals.push_back({address.address, 3260, true, true});
  return rank_interface_pairs(input);
}

std::string_view code_of(const RankedPair& pair) {
  return pair.no_iser ? transport::rdma_reason_of(pair.no_iser->code) : std::string_view();
}

TEST(InterfaceRanking, PairsOfOneSubnetAreUsableAndOthersSayWhyNot) {
  const auto pairs = rank({interface("eth0", "10.0.0.1"), interface("eth1", "10.0.1.1")},
                          {interface("eth0", "10.0.0.2")});
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
  b = with_rdma(b, "rxe_b");
  d = with_rdma(d, "rxe_d");
  a.speed_mbps = c.speed_mbps = 100000;
  const auto pairs = rank({a, b}, {c, d});
  EXPECT_EQ(pairs[0].host_interface, "b");
  EXPECT_TRUE(pairs[0].iser);
  EXPECT_EQ(pairs[0].explanation,
            "same subnet, RDMA at both ends (RoCE v2), MTU 1500, 10000 Mbit/s");
  EXPECT_EQ(code_of(pairs[1]), "no-rdma-device");
}

TEST(InterfaceRanking, WhatKeepsIserFromBeingUsedIsNamedWithItsEnd) {
  const auto a = with_rdma(interface("a", "10.0.0.1"), "rxe_a");
  const auto b = with_rdma(interface("b", "10.0.0.2"), "rxe_b");
  const auto plain_a = interface("a", "10.0.0.1"), plain_b = interface("b", "10.0.0.2");
  auto down = b, unknown = a, first = b;
  down.rdma->link_up = false;
  down.rdma->link_state = "DOWN";
  unknown.addresses[0].rdma_type.clear();
  first.addresses[0].rdma_type = "RoCE v1";
  struct Case {
    RankedInterface host, remote;
    const char *code, *text;
  };
  const Case cases[] = {
      {a, plain_b, "no-rdma-device", "no RDMA device on b (nas2)"},
      {plain_a, b, "no-rdma-device", "no RDMA device on a (here)"},
      {plain_a, plain_b, "no-rdma-device", "no RDMA device on a (here) nor on b (nas2)"},
      {a, down, "rdma-link-down", "RDMA device rxe_b on b (nas2) has no link: it is DOWN"},
      {unknown, b, "no-gid", "RDMA device rxe_a on a (here) has no entry for 10.0.0.1"},
      {a, first, "no-gid", "10.0.0.1 has RoCE v2 and 10.0.0.2 has RoCE v1"},
      {a, interface("b", "10.0.9.2"), "no-subnet", "a (here) and b (nas2) share no subnet"},
  };
  for (const Case& one : cases) {
    const RankedPair pair = rank({one.host}, {one.remote})[0];
    EXPECT_FALSE(pair.iser) << one.text;
    EXPECT_EQ(code_of(pair), one.code);
    ASSERT_TRUE(pair.no_iser);
    EXPECT_EQ(pair.no_iser->text, one.text);
  }
}

TEST(InterfaceRanking, ThePeerMustServeIserThereAndSomethingAtAll) {
  RankingInput input;
  input.peer = "nas2";
  input.host = {with_rdma(interface("a", "10.0.0.1"), "rxe_a")};
  input.remote = {with_rdma(interface("b", "10.0.0.2"), "rxe_b")};
  EXPECT_EQ(rank_interface_pairs(input)[0].explanation,
            "not usable: the peer serves nothing at 10.0.0.2");

  input.portals = {{"10.0.0.2", 3261, true, false}};
  const RankedPair pair = rank_interface_pairs(input)[0];
  EXPECT_TRUE(pair.usable);
  EXPECT_EQ(pair.port, 3261);
  EXPECT_EQ(code_of(pair), "peer-has-no-iser");
  EXPECT_EQ(pair.no_iser->text, "nas2 serves no iSER at 10.0.0.2");
}

TEST(InterfaceRanking, OfSeveralAddressesThoseThatAreServedAndKnownToRdmaAreTaken) {
  auto a = with_rdma(interface("a", "10.0.0.1"), "rxe_a");
  auto b = with_rdma(interface("b", "10.0.0.2"), "rxe_b");
  a.addresses.insert(a.addresses.begin(), {"10.0.7.1", 24, {}});
  b.addresses.insert(b.addresses.begin(), {"10.0.7.2", 24, {}});
  b.addresses.insert(b.addresses.begin(), {"10.0.0.9", 24, "RoCE v2"});
  RankingInput input;
  input.host = {a};
  input.remote = {b};
  input.portals = {{"10.0.7.2", 3260, true, true}, {"10.0.0.2", 3260, true, true}};

  const RankedPair pair = rank_interface_pairs(input)[0];

  EXPECT_EQ(pair.host_address, "10.0.0.1");
  EXPECT_EQ(pair.remote_address, "10.0.0.2");
  EXPECT_TRUE(pair.iser);
}

TEST(InterfaceRanking, TheControlInterfaceIsTheLastChoiceAmongUsableOnes) {
  auto management = interface("mgmt", "10.0.0.1"), data = interface("data", "10.0.1.1");
  management.carries_control = true;
  management.speed_mbps = 100000;
  const auto pairs =
      rank({management, data}, {interface("mgmt", "10.0.0.2"), interface("data", "10.0.1.2")});
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
  const auto pairs = rank({fast, even}, {fast_peer, interface("even", "10.0.1.2")});
  EXPECT_EQ(pairs[0].host_interface, "even");
  EXPECT_EQ(pairs[1].explanation,
            "same subnet, MTU differs (9000 here, 1500 there), 100000 Mbit/s");
}

TEST(InterfaceRanking, TheUsersWishIsObeyed) {
  const std::vector<RankedInterface> host = {interface("a", "10.0.0.1"),
                                             interface("b", "10.0.1.1")};
  const std::vector<RankedInterface> remote = {interface("c", "10.0.0.2"),
                                               interface("d", "10.0.1.2")};
  const auto pairs = rank(host, remote, {.host_interface = "b", .remote_interface = ""});
  EXPECT_EQ(pairs[0].host_interface, "b");
  EXPECT_TRUE(pairs[0].usable);
  for (size_t i = 1; i < pairs.size(); ++i) EXPECT_FALSE(pairs[i].usable);
}

TEST(InterfaceRanking, LinkLocalAddressesAndDownInterfacesAreNoWay) {
  auto down = interface("a", "10.0.0.1");
  down.up = false;
  EXPECT_FALSE(rank({down}, {interface("b", "10.0.0.2")})[0].usable);
  EXPECT_FALSE(rank({interface("a", "169.254.0.1")}, {interface("b", "169.254.0.2")})[0].usable);
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
