// SPDX-License-Identifier: Apache-2.0
#include "target/iscsi/connection_caps.h"

#include <gtest/gtest.h>

namespace vjbod::target {
namespace {

void connect(ConnectionCaps& caps, SessionId session, const std::string& address) {
  ASSERT_TRUE(caps.reserve(address).accepted);
  caps.adopted(session, address);
}

TEST(ConnectionCaps, RefusesBeyondTheTotalWhenEveryConnectionIsLoggedIn) {
  ConnectionCaps caps(2, 2);
  connect(caps, 1, "10.0.0.1");
  connect(caps, 2, "10.0.0.2");
  caps.logged_in(1);
  caps.logged_in(2);
  EXPECT_FALSE(caps.reserve("10.0.0.3").accepted);
  caps.ended(1);
  EXPECT_TRUE(caps.reserve("10.0.0.3").accepted);
}

TEST(ConnectionCaps, TheOldestHalfOpenConnectionMakesWay) {
  ConnectionCaps caps(3, 3);
  connect(caps, 1, "10.0.0.1");
  caps.logged_in(1);
  connect(caps, 2, "10.0.0.1");
  connect(caps, 3, "10.0.0.1");
  const auto answer = caps.reserve("10.0.0.9");
  EXPECT_TRUE(answer.accepted);
  EXPECT_EQ(answer.evict, std::optional<SessionId>(2));
}

TEST(ConnectionCaps, AnAddressAtItsLimitEvictsOnlyItsOwn) {
  ConnectionCaps caps(100, 1);
  connect(caps, 1, "10.0.0.1");
  connect(caps, 2, "10.0.0.2");
  const auto answer = caps.reserve("10.0.0.2");
  EXPECT_TRUE(answer.accepted);
  EXPECT_EQ(answer.evict, std::optional<SessionId>(2));
}

TEST(ConnectionCaps, AConnectionIsEvictedOnce) {
  ConnectionCaps caps(1, 1);
  connect(caps, 1, "10.0.0.1");
  EXPECT_TRUE(caps.reserve("10.0.0.1").evict.has_value());
  EXPECT_FALSE(caps.reserve("10.0.0.1").accepted) << "no second victim";
}

}  // namespace
}  // namespace vjbod::target
