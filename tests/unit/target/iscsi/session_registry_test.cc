// SPDX-License-Identifier: Apache-2.0
#include "target/iscsi/session_registry.h"

#include <gtest/gtest.h>

namespace vjbod::target {
namespace {

const NexusKey key{
    "iqn.2026-11.io.vjbod:nas1", {std::byte{0x80}}, "iqn.2026-11.io.vjbod:nas2.disk"};
const NexusKey other_isid{key.initiator_name, {std::byte{0x81}}, key.target_name};
const NexusKey other_initiator{"iqn.1998-01.com.vmware:esx1", {std::byte{0x80}}, key.target_name};
const NexusKey other_target{key.initiator_name, key.isid, "iqn.2026-11.io.vjbod:nas2.other"};

NexusWish sole(const NexusKey& wanted) {
  return {.key = wanted, .sole = true};
}
NexusWish reinstating(const NexusKey& wanted, uint16_t tsih, uint16_t cid = 0) {
  return {.key = wanted, .tsih = tsih, .cid = cid};
}
bool admits(const SessionRegistry::Actions& actions, SessionId session) {
  return actions.admit.size() == 1 && actions.admit[0].session == session;
}

TEST(SessionRegistry, AdmitsAFirstLoginAtOnceWithATsih) {
  SessionRegistry registry;
  const auto actions = registry.request(1, {key});
  ASSERT_EQ(actions.admit.size(), 1u);
  EXPECT_EQ(actions.admit[0].session, 1u);
  EXPECT_NE(actions.admit[0].tsih, 0);
  EXPECT_TRUE(actions.terminate.empty());
}

TEST(SessionRegistry, HoldsAReinstatingLoginUntilTheOldSessionHasEnded) {
  SessionRegistry registry;
  registry.request(1, {key});

  const auto asked = registry.request(2, {key});
  EXPECT_TRUE(asked.admit.empty());
  EXPECT_EQ(asked.terminate, std::vector<SessionId>{1});

  const auto ended = registry.ended(1);
  ASSERT_EQ(ended.admit.size(), 1u);
  EXPECT_EQ(ended.admit[0].session, 2u);
}

TEST(SessionRegistry, LetsOnlyTheNewestOfSeveralWaitingLoginsIn) {
  SessionRegistry registry;
  registry.request(1, {key});
  registry.request(2, {key});

  const auto third = registry.request(3, {key});
  ASSERT_EQ(third.refuse.size(), 1u);
  EXPECT_EQ(third.refuse[0].session, 2u);
  EXPECT_TRUE(third.terminate.empty()) << "the holder was told already";

  EXPECT_TRUE(registry.ended(2).admit.empty());
  const auto ended = registry.ended(1);
  ASSERT_EQ(ended.admit.size(), 1u);
  EXPECT_EQ(ended.admit[0].session, 3u);
}

TEST(SessionRegistry, KeepsAnotherIsidApart) {
  SessionRegistry registry;
  registry.request(1, {key});
  const auto actions = registry.request(2, {other_isid});
  EXPECT_EQ(actions.admit.size(), 1u);
  EXPECT_TRUE(actions.terminate.empty());
}

TEST(SessionRegistry, ALoginWithATsihReinstatesItsSessionAndKeepsTheTsih) {
  SessionRegistry registry;
  const uint16_t tsih = registry.request(1, {key}).admit[0].tsih;

  const auto asked = registry.request(2, reinstating(key, tsih));
  EXPECT_EQ(asked.terminate, std::vector<SessionId>{1});
  EXPECT_TRUE(asked.admit.empty());

  const auto ended = registry.ended(1);
  ASSERT_TRUE(admits(ended, 2));
  EXPECT_EQ(ended.admit[0].tsih, tsih);
  EXPECT_EQ(registry.request(3, reinstating(key, tsih)).terminate, std::vector<SessionId>{2});
}

TEST(SessionRegistry, ATsihOfNoSessionOfThisNexusIsUnknown) {
  SessionRegistry registry;
  const uint16_t tsih = registry.request(1, {key}).admit[0].tsih;
  SessionId session = 2;
  for (const NexusWish& wish :
       {reinstating(key, static_cast<uint16_t>(tsih + 1)), reinstating(other_isid, tsih),
        reinstating(other_initiator, tsih)}) {
    const auto refused = registry.request(session++, wish);
    ASSERT_EQ(refused.refuse.size(), 1u);
    EXPECT_EQ(refused.refuse[0].status, iscsi::LoginStatus::session_does_not_exist);
    EXPECT_TRUE(refused.terminate.empty());
  }
  registry.ended(1);
  EXPECT_EQ(registry.request(session, reinstating(key, tsih)).refuse.size(), 1u);
}

TEST(SessionRegistry, RefusesASecondConnectionToASession) {
  SessionRegistry registry;
  const uint16_t tsih = registry.request(1, {key}).admit[0].tsih;
  const auto second = registry.request(2, reinstating(key, tsih, 7));
  ASSERT_EQ(second.refuse.size(), 1u);
  EXPECT_EQ(second.refuse[0].status, iscsi::LoginStatus::too_many_connections);
  EXPECT_TRUE(second.terminate.empty());
}

TEST(SessionRegistry, NobodyIsAdmittedWhileAnotherNexusOfTheTargetEnds) {
  SessionRegistry registry;
  registry.request(1, {key});
  registry.ending(1);
  EXPECT_TRUE(registry.request(2, {other_isid}).admit.empty());
  EXPECT_TRUE(registry.request(3, {other_initiator}).admit.empty());
  EXPECT_TRUE(admits(registry.request(4, {other_target}), 4)) << "its disk is another one";

  const auto ended = registry.ended(1);
  ASSERT_EQ(ended.admit.size(), 2u);
  EXPECT_EQ(ended.admit[0].session, 2u);
  EXPECT_EQ(ended.admit[1].session, 3u);
}

TEST(SessionRegistry, ALoginThatWaitsAlsoWaitsForWhatEndsMeanwhile) {
  SessionRegistry registry;
  registry.request(1, {key});
  registry.request(2, {other_initiator});
  registry.ending(1);
  registry.request(3, {other_isid});
  registry.ending(2);
  EXPECT_TRUE(registry.ended(1).admit.empty());
  EXPECT_TRUE(admits(registry.ended(2), 3));
}

TEST(SessionRegistry, ASoleNexusEndsEveryOtherOfItsTargetFirst) {
  SessionRegistry registry;
  registry.request(1, {key});
  registry.request(2, {other_initiator});
  registry.request(3, {other_target});

  const auto asked = registry.request(4, sole(other_isid));
  EXPECT_EQ(asked.terminate, (std::vector<SessionId>{1, 2}));
  EXPECT_TRUE(asked.admit.empty());
  EXPECT_TRUE(registry.ended(2).admit.empty());
  EXPECT_TRUE(admits(registry.ended(1), 4));
}

TEST(SessionRegistry, TheNewestOfSeveralSoleLoginsIsMeant) {
  SessionRegistry registry;
  registry.request(1, sole(key));
  registry.request(2, sole(other_isid));
  const auto third = registry.request(3, sole(key));
  ASSERT_EQ(third.refuse.size(), 1u);
  EXPECT_EQ(third.refuse[0].session, 2u);
  EXPECT_TRUE(admits(registry.ended(1), 3));
  EXPECT_TRUE(registry.ended(2).admit.empty());
}

TEST(SessionRegistry, SessionsThatShareATargetAreLeftAlone) {
  SessionRegistry registry;
  registry.request(1, {key});
  const auto second = registry.request(2, {other_initiator});
  EXPECT_TRUE(admits(second, 2));
  EXPECT_TRUE(second.terminate.empty());
  registry.ending(1);
  EXPECT_TRUE(registry.request(3, {key}).terminate.empty());
  const auto ended = registry.ended(1);
  EXPECT_TRUE(admits(ended, 3));
  EXPECT_TRUE(ended.terminate.empty());
}

TEST(SessionRegistry, WhatIsToldToEndHoldsLoginsFromThatMomentOn) {
  SessionRegistry registry;
  registry.request(1, {key});
  registry.request(2, {other_initiator});
  registry.request(3, {other_target});
  registry.ending_matching(key.initiator_name, "");
  EXPECT_TRUE(registry.request(4, {other_isid}).admit.empty());
  EXPECT_TRUE(admits(registry.ended(1), 4));
  registry.ending_matching("", key.target_name);
  EXPECT_TRUE(registry.request(5, {other_initiator}).terminate.empty());
}

TEST(SessionRegistry, ALoginThatWasToldToEndWhileItWaitedIsNeverAdmitted) {
  SessionRegistry registry;
  registry.request(1, {key});
  registry.request(2, {key});
  registry.ending_matching("", key.target_name);
  EXPECT_TRUE(registry.ended(1).admit.empty());
  EXPECT_TRUE(registry.ended(2).admit.empty());
  EXPECT_TRUE(admits(registry.request(3, {key}), 3));
}

TEST(SessionRegistry, AWaitingLoginThatDiesLeavesTheNexusToTheNext) {
  SessionRegistry registry;
  registry.request(1, {key});
  registry.request(2, {key});
  registry.ended(2);
  EXPECT_TRUE(registry.ended(1).admit.empty());
  EXPECT_EQ(registry.request(3, {key}).admit.size(), 1u);
}

TEST(SessionRegistry, RefusesWhenEveryTsihIsTaken) {
  SessionRegistry registry;
  for (SessionId session = 1; session <= SessionRegistry::sessions_max; ++session) {
    ASSERT_EQ(registry.request_discovery(session).admit.size(), 1u);
  }
  const auto actions = registry.request_discovery(SessionRegistry::sessions_max + 1);
  ASSERT_EQ(actions.refuse.size(), 1u);
  EXPECT_EQ(actions.refuse[0].status, iscsi::LoginStatus::out_of_resources);
  registry.ended(7);
  EXPECT_EQ(registry.request_discovery(SessionRegistry::sessions_max + 2).admit.size(), 1u);
}

}  // namespace
}  // namespace vjbod::target
