// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/path_choice.h"

#include <gtest/gtest.h>

#include "common/rpc/errc.h"

namespace vjbod::initiator {
namespace {

using transport::Kind;

class PathChoiceTest : public testing::Test {
 protected:
  // A pair of interfaces of one subnet, RDMA at the ends that are said to have it.
  void add_pair(const std::string& name, const std::string& subnet, bool rdma_here,
                bool rdma_there) {
    net::Interface ours;
    ours.name = name;
    ours.up = true;
    ours.mtu = 9000;
    ours.addresses = {{subnet + "1", 24, false, rdma_here ? "RoCE v2" : ""}};
    if (rdma_here) {
      ours.rdma.emplace();
      ours.rdma->device = "rxe_" + name;
      ours.rdma->link_up = true;
    }
    host.push_back(ours);
    v1::Interface& theirs = *peer.add_interfaces();
    theirs.set_name(name);
    theirs.set_up(true);
    theirs.set_mtu(9000);
    v1::InterfaceAddress& address = *theirs.add_addresses();
    address.set_address(subnet + "2");
    address.set_prefix_length(24);
    if (rdma_there) {
      theirs.set_rdma_device("rxe_" + name);
      theirs.set_rdma_link_up(true);
      address.set_rdma_type("RoCE v2");
    }
    v1::Portal& portal = *peer.add_portals();
    portal.set_address(subnet + "2");
    portal.set_port(3260);
    portal.add_transports("iscsi");
    portal.add_transports("iser");
  }
  PathChoiceTest() { peer.set_target_name("nas2"); }
  Result<PathChoice> choose(const std::string& transport) {
    DiskChoices choices;
    choices.transport = transport;
    return choose_paths(host, peer, control_address, choices);
  }
  static std::vector<std::string> texts(const PathChoice& choice) {
    std::vector<std::string> all;
    for (const PathCandidate& path : choice.candidates)
      all.push_back(std::string(transport::name_of(path.kind)) + " " + path.endpoint.address);
    return all;
  }

  std::vector<net::Interface> host;
  v1::DescribeResponse peer;
  std::string control_address = "10.0.0.2";
};

TEST_F(PathChoiceTest, AutoTriesIserOnEveryPairThatHasItAndThenIscsi) {
  add_pair("mgmt", "10.0.0.", false, false);
  add_pair("eth1", "10.0.1.", true, true);
  add_pair("eth2", "10.0.2.", true, true);
  add_pair("eth3", "10.0.3.", true, false);

  const auto choice = choose("auto");

  ASSERT_TRUE(choice);
  EXPECT_EQ(texts(*choice),
            (std::vector<std::string>{"iSER 10.0.1.2", "iSER 10.0.2.2", "iSCSI 10.0.1.2",
                                      "iSCSI 10.0.2.2", "iSCSI 10.0.3.2"}));
  EXPECT_EQ(choice->candidates[0].endpoint.source_address, "10.0.1.1");
  EXPECT_EQ(choice->candidates[0].endpoint.interface_name, "eth1");
  EXPECT_EQ(choice->host_interface, "eth1");
  EXPECT_FALSE(choice->no_iser);
}

TEST_F(PathChoiceTest, WithoutRdmaAutoIsIscsiAndSaysWhy) {
  add_pair("eth0", "10.0.0.", false, false);

  const auto choice = choose("auto");

  ASSERT_TRUE(choice);
  EXPECT_EQ(texts(*choice), std::vector<std::string>{"iSCSI 10.0.0.2"});
  ASSERT_TRUE(choice->no_iser);
  EXPECT_EQ(choice->no_iser->text, "no RDMA device on eth0 (here) nor on eth0 (nas2)");
  EXPECT_TRUE(choice->no_iser->without_rdma);
}

TEST_F(PathChoiceTest, RdmaAtOneEndOnlyIsAFallback) {
  add_pair("eth0", "10.0.0.", true, false);
  const auto choice = choose("auto");
  ASSERT_TRUE(choice && choice->no_iser);
  EXPECT_EQ(choice->no_iser->text, "no RDMA device on eth0 (nas2)");
  EXPECT_FALSE(choice->no_iser->without_rdma);
}

TEST_F(PathChoiceTest, IserIsNothingElseAndFailsWithTheReason) {
  add_pair("eth0", "10.0.0.", true, true);
  const auto choice = choose("iser");
  ASSERT_TRUE(choice);
  EXPECT_EQ(texts(*choice), std::vector<std::string>{"iSER 10.0.0.2"});

  peer.mutable_portals(0)->mutable_transports()->RemoveLast();
  const auto refused = choose("iser");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, rpc::Errc::iser_unavailable);
  EXPECT_NE(refused.error().text.find("peer-has-no-iser: nas2 serves no iSER at 10.0.0.2"),
            std::string::npos)
      << refused.error().text;
}

TEST_F(PathChoiceTest, IscsiNeverTouchesRdma) {
  add_pair("eth0", "10.0.0.", true, true);
  const auto choice = choose("iscsi");
  ASSERT_TRUE(choice);
  EXPECT_EQ(texts(*choice), std::vector<std::string>{"iSCSI 10.0.0.2"});
  EXPECT_FALSE(choice->no_iser);
}

TEST_F(PathChoiceTest, TheControlNetworkIsTakenForIserOnlyWhereNoOtherHasIt) {
  add_pair("mgmt", "10.0.0.", true, true);
  add_pair("eth1", "10.0.1.", false, false);
  const auto only = choose("auto");
  ASSERT_TRUE(only);
  EXPECT_EQ(texts(*only), (std::vector<std::string>{"iSER 10.0.0.2", "iSCSI 10.0.1.2"}));

  add_pair("eth2", "10.0.2.", true, true);
  const auto other = choose("auto");
  ASSERT_TRUE(other);
  EXPECT_EQ(texts(*other),
            (std::vector<std::string>{"iSER 10.0.2.2", "iSCSI 10.0.2.2", "iSCSI 10.0.1.2"}));
}

TEST_F(PathChoiceTest, APeerBehindARouterIsReachedByIscsi) {
  add_pair("eth0", "10.0.0.", true, true);
  host[0].addresses[0].address = "192.168.7.1";
  const auto choice = choose("auto");
  ASSERT_TRUE(choice && choice->no_iser);
  EXPECT_EQ(transport::rdma_reason_of(choice->no_iser->code), "no-subnet");
}

TEST_F(PathChoiceTest, APeerOnThisBoxIsReachedByRdmaOfItsAddress) {
  add_pair("eth0", "10.0.0.", true, true);
  host[0].addresses[0].address = "10.0.0.2";
  const auto choice = choose("auto");
  ASSERT_TRUE(choice);
  EXPECT_EQ(texts(*choice), (std::vector<std::string>{"iSER 10.0.0.2", "iSCSI 10.0.0.2"}));
  EXPECT_EQ(choice->candidates[0].endpoint.source_address, "10.0.0.2");
}

TEST_F(PathChoiceTest, AForeignTargetIsTriedByIserWhereTheWayThereHasRdma) {
  add_pair("eth0", "10.0.0.", true, false);
  add_pair("eth1", "10.0.1.", false, false);

  const auto rdma = choose_foreign_paths(host, "10.0.0.9", 3260, "10.0.0.1", {});
  ASSERT_TRUE(rdma);
  EXPECT_EQ(texts(*rdma), (std::vector<std::string>{"iSER 10.0.0.9", "iSCSI 10.0.0.9"}));

  const auto plain = choose_foreign_paths(host, "10.0.1.9", 3260, "10.0.1.1", {});
  ASSERT_TRUE(plain && plain->no_iser);
  EXPECT_EQ(texts(*plain), std::vector<std::string>{"iSCSI 10.0.1.9"});
  EXPECT_EQ(plain->no_iser->text, "no RDMA device on eth1 (here)");
}

}  // namespace
}  // namespace vjbod::initiator
