// SPDX-License-Identifier: Apache-2.0
#include "target/control/access_policy.h"

#include <gtest/gtest.h>

namespace vjbod::target {
namespace {

using Access = LoginDecision::Access;

constexpr const char* host_iqn = "iqn.2026-11.io.vjbod:nas1";
constexpr const char* esx_iqn = "iqn.1998-01.com.vmware:esx1";
constexpr const char* open_iqn = "iqn.1993-08.org.debian:01:abc";
constexpr const char* disk1 = "iqn.2026-11.io.vjbod:nas2.disk1";  // bound to nas1
constexpr const char* disk2 = "iqn.2026-11.io.vjbod:nas2.disk2";  // for esx1 and the open one
constexpr const char* disk3 = "iqn.2026-11.io.vjbod:nas2.disk3";  // for nobody

LunRecord lun(std::string name, const char* iqn) {
  LunRecord record;
  record.name = std::move(name);
  record.target_iqn = iqn;
  return record;
}

TargetState sample() {
  TargetState state;
  state.hosts["nas1"] = PairedHost{"nas1", {}, host_iqn, {}};
  ForeignInitiator esx{esx_iqn, iscsi::ChapCredentials{"esx", iscsi::Secret("secret of esx")},
                       iscsi::ChapCredentials{"box", iscsi::Secret("secret of box")}};
  state.initiators.emplace(esx_iqn, std::move(esx));
  state.initiators.emplace(open_iqn, ForeignInitiator{open_iqn, {}, {}});
  LunRecord bound = lun("disk1", disk1);
  bound.binding = LunBinding{"nas1",
                             {"host user", iscsi::Secret("secret of nas1")},
                             {"target user", iscsi::Secret("secret of nas2")}};
  state.luns.emplace("disk1", std::move(bound));
  LunRecord shared = lun("disk2", disk2);
  shared.allowed_initiators = {esx_iqn, open_iqn};
  state.luns.emplace("disk2", std::move(shared));
  state.luns.emplace("disk3", lun("disk3", disk3));
  return state;
}

class AccessPolicyTest : public testing::Test {
 protected:
  LoginDecision login(const char* initiator, const char* target) {
    return policy_.decide({initiator, target, false});
  }
  LoginDecision discovery(const char* initiator) { return policy_.decide({initiator, "", true}); }

  AccessPolicy policy_{sample(), {disk1, disk2, disk3}, {iscsi::ChapAlgorithm::md5}};
};

TEST_F(AccessPolicyTest, AHostReachesItsLunWithMutualChapOnly) {
  LoginDecision decision = login(host_iqn, disk1);
  EXPECT_EQ(decision.access, Access::allowed);
  ASSERT_TRUE(decision.chap);
  EXPECT_EQ(decision.chap->initiator.user, "host user");
  ASSERT_TRUE(decision.chap->mutual);
  EXPECT_EQ(decision.chap->mutual->user, "target user");
  // Whatever foreign initiators need to be given.
  EXPECT_EQ(decision.chap->algorithms,
            (std::vector{iscsi::ChapAlgorithm::sha256, iscsi::ChapAlgorithm::sha3_256}));
}

TEST_F(AccessPolicyTest, ALunOfAHostHasOneNexusAndOneOfForeignInitiatorsMany) {
  EXPECT_TRUE(login(host_iqn, disk1).sole_nexus);
  EXPECT_FALSE(login(esx_iqn, disk2).sole_nexus);
}

TEST_F(AccessPolicyTest, AHostReachesNothingElse) {
  EXPECT_EQ(login(host_iqn, disk2).access, Access::not_found);
  EXPECT_EQ(login(host_iqn, disk3).access, Access::not_found);
  EXPECT_EQ(login(host_iqn, "iqn.2026-11.io.vjbod:nas2.nothing").access, Access::not_found);
}

TEST_F(AccessPolicyTest, AHostDiscoversNothing) {
  EXPECT_EQ(discovery(host_iqn).access, Access::forbidden);
  EXPECT_TRUE(policy_.targets_of(host_iqn).empty());
}

TEST_F(AccessPolicyTest, AForeignInitiatorReachesWhatItWasAllowed) {
  LoginDecision decision = login(esx_iqn, disk2);
  EXPECT_EQ(decision.access, Access::allowed);
  ASSERT_TRUE(decision.chap && decision.chap->mutual);
  EXPECT_EQ(decision.chap->initiator.user, "esx");
  EXPECT_EQ(login(esx_iqn, disk1).access, Access::not_found);
  EXPECT_EQ(login(esx_iqn, disk3).access, Access::not_found);
}

TEST_F(AccessPolicyTest, DiscoveryAsksForTheSecretAndShowsTheAskersOwn) {
  LoginDecision decision = discovery(esx_iqn);
  EXPECT_EQ(decision.access, Access::allowed);
  EXPECT_TRUE(decision.chap);
  EXPECT_EQ(policy_.targets_of(esx_iqn), std::vector<std::string>{disk2});
}

TEST_F(AccessPolicyTest, AnInitiatorWithoutASecretNeedsNone) {
  EXPECT_EQ(discovery(open_iqn).access, Access::allowed);
  EXPECT_FALSE(login(open_iqn, disk2).chap);
  EXPECT_EQ(login(open_iqn, disk2).access, Access::allowed);
}

TEST_F(AccessPolicyTest, AStrangerLearnsNothing) {
  for (const char* target : {disk1, disk2, disk3, "iqn.2026-11.io.vjbod:nas2.nothing"})
    EXPECT_EQ(login("iqn.2000-01.x:y", target).access, Access::forbidden);
  EXPECT_EQ(discovery("iqn.2000-01.x:y").access, Access::forbidden);
  EXPECT_TRUE(policy_.targets_of("iqn.2000-01.x:y").empty());
}

TEST_F(AccessPolicyTest, ALunThatIsNotServedIsUnavailable) {
  AccessPolicy policy(sample(), {}, {iscsi::ChapAlgorithm::sha256});
  EXPECT_EQ(policy.decide({host_iqn, disk1, false}).access, Access::unavailable);
  EXPECT_TRUE(policy.targets_of(esx_iqn).empty());
}

}  // namespace
}  // namespace vjbod::target
