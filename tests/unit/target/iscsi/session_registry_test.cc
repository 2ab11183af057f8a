// SPDX-License-Identifier: Apache-2.0
#include "target/iscsi/session_registry.h"

#include <gtest/gtest.h>

namespace vjbod::target {
namespace {

const NexusKey key{
    "iqn.2026-11.io.vjbod:nas1", {std::byte{0x80}}, "iqn.2026-11.io.vjbod:nas2.disk"};
const NexusKey other_isid{key.initiator_name, {std::byte{0x81}}, key.target_name};

TEST(SessionRegistry, AdmitsAFirstLoginAtOnceWithATsih) {
  SessionRegistry registry;
  const auto actions = registry.request(1, key, 0);
  ASSERT_EQ(actions.admit.size(), 1u);
  EXPECT_EQ(actions.admit[0].session, 1u);
  EXPECT_NE(actions.admit[0].tsih, 0);
  EXPECT_TRUE(actions.terminate.empty());
}

TEST(SessionRegistry, HoldsAReinstatingLoginUntilTheOldSessionHasEnded) {
  SessionRegistry registry;
  registry.request(1, key, 0);

  const auto asked = registry.request(2, key, 0);
  EXPECT_TRUE(asked.admit.empty());
  EXPECT_EQ(asked.terminate, std::vector<SessionId>{1});

  const auto ended = registry.ended(1);
  ASSERT_EQ(ended.admit.size(), 1u);
  EXPECT_EQ(ended.admit[0].session, 2u);
}

TEST(SessionRegistry, LetsOnlyTheNewestOfSeveralWaitingLoginsIn) {
  SessionRegistry registry;
  registry.request(1, key, 0);
  registry.request(2, key, 0);

  const auto third = registry.request(3, key, 0);
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
  registry.request(1, key, 0);
  const auto actions = registry.request(2, other_isid, 0);
  EXPECT_EQ(actions.admit.size(), 1u);
  EXPECT_TRUE(actions.terminate.empty());
}

TEST(SessionRegistry, RefusesASecondConnectionToASession) {
  SessionRegistry registry;
  const uint16_t tsih = registry.request(1, key, 0).admit[0].tsih;

  const auto second = registry.request(2, key, tsih);
  ASSERT_EQ(second.refuse.size(), 1u);
  EXPECT_EQ(second.refuse[0].status, iscsi::LoginStatus::too_many_connections);

  const auto stranger = registry.request(3, other_isid, tsih);
  ASSERT_EQ(stranger.refuse.size(), 1u);
  EXPECT_EQ(stranger.refuse[0].status, iscsi::LoginStatus::session_does_not_exist);
}

TEST(SessionRegistry, AWaitingLoginThatDiesLeavesTheNexusToTheNext) {
  SessionRegistry registry;
  registry.request(1, key, 0);
  registry.request(2, key, 0);
  registry.ended(2);
  EXPECT_TRUE(registry.ended(1).admit.empty());
  EXPECT_EQ(registry.request(3, key, 0).admit.size(), 1u);
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
