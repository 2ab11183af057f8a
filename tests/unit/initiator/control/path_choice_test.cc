// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/path_choice.h"

#include <gtest/gtest.h>

#include "common/rpc/errc.h"

namespace vjbod::initiator {
namespace {

net::Interface own(const std::string& name, const std::string& address) {
  net::Interface interface;
  interface.name = name;
  interface.up = true;
  interface.mtu = 1500;
  net::InterfaceAddress one;
  one.address = address;
  one.prefix_length = 24;
  interface.addresses.push_back(one);
  return interface;
}

v1::DescribeResponse peer_with(const std::vector<std::string>& addresses) {
  v1::DescribeResponse peer;
  peer.set_target_name("nas2");
  for (const std::string& address : addresses) {
    v1::Portal& portal = *peer.add_portals();
    portal.set_address(address);
    portal.set_port(3260);
    v1::Interface& interface = *peer.add_interfaces();
    interface.set_name("data" + address);
    interface.set_up(true);
    interface.set_mtu(1500);
    v1::InterfaceAddress& at = *interface.add_addresses();
    at.set_address(address);
    at.set_prefix_length(24);
  }
  return peer;
}

TEST(PathChoice, BindsToTheInterfaceOfThePair) {
  const auto choice = choose_paths({own("eth1", "10.0.1.1"), own("eth2", "10.0.2.1")},
                                   peer_with({"10.0.2.2"}), "10.0.1.2", {});
  ASSERT_TRUE(choice);
  ASSERT_EQ(choice->candidates.size(), 1u);
  EXPECT_EQ(choice->candidates[0].endpoint.address, "10.0.2.2");
  EXPECT_EQ(choice->candidates[0].endpoint.source_address, "10.0.2.1");
  EXPECT_EQ(choice->candidates[0].endpoint.interface_name, "eth2");
}

// Paired by a loopback address, serving by a real one: the way does not leave the kernel, and a
// socket that is bound to the interface would find none.
TEST(PathChoice, ReachesAPeerOnThisBoxByAnyOfItsPortals) {
  for (const std::string control : {"127.0.0.1", "10.0.1.1"}) {
    const auto choice =
        choose_paths({own("eth1", "10.0.1.1")}, peer_with({"10.0.1.1"}), control, {});
    ASSERT_TRUE(choice) << control << ": " << choice.error().text;
    EXPECT_EQ(choice->candidates[0].endpoint.address, "10.0.1.1");
    EXPECT_EQ(choice->candidates[0].endpoint.interface_name, "");
  }
}

TEST(PathChoice, SaysThatAPeerServesNothing) {
  const auto choice = choose_paths({own("eth1", "10.0.1.1")}, peer_with({}), "10.0.1.2", {});
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().code, rpc::Errc::peer_unreachable);
}

}  // namespace
}  // namespace vjbod::initiator
