// SPDX-License-Identifier: Apache-2.0
#include "initiator/session/transport_plan.h"

#include <gtest/gtest.h>

namespace vjbod::initiator {
namespace {

PathCandidate path(transport::Kind kind, const std::string& address) {
  return {kind, {address, 3260, "10.0.0.1", "eth0"}};
}

TEST(TransportPlan, GivesEachPathOnceInOrderAndThenEndsTheRound) {
  TransportPlan plan(
      {path(transport::Kind::iser, "10.0.0.2"), path(transport::Kind::iscsi, "10.0.0.2")});

  EXPECT_EQ(plan.next()->kind, transport::Kind::iser);
  EXPECT_EQ(plan.next()->kind, transport::Kind::iscsi);
  EXPECT_EQ(plan.next(), nullptr);
  EXPECT_EQ(plan.next()->kind, transport::Kind::iser);
}

TEST(TransportPlan, BeginsWithTheBestAgainAfterARestart) {
  TransportPlan plan(
      {path(transport::Kind::iscsi, "10.0.0.2"), path(transport::Kind::iscsi, "10.0.0.3")});
  plan.next();

  plan.restart();

  EXPECT_EQ(plan.next()->endpoint.address, "10.0.0.2");
}

TEST(TransportPlan, FollowsARedirectionOnceOverTheSameInterface) {
  TransportPlan plan({path(transport::Kind::iscsi, "10.0.0.2")});
  plan.next();

  ASSERT_TRUE(plan.redirect("10.0.0.9:3261"));

  const PathCandidate* redirected = plan.next();
  EXPECT_EQ(redirected->endpoint.address, "10.0.0.9");
  EXPECT_EQ(redirected->endpoint.port, 3261);
  EXPECT_EQ(redirected->endpoint.interface_name, "eth0");
  EXPECT_EQ(redirected->endpoint.source_address, "10.0.0.1");
  EXPECT_FALSE(plan.redirect("10.0.0.10"));
  EXPECT_EQ(plan.next(), nullptr);
}

TEST(TransportPlan, FollowsNoNamesAndNoNonsense) {
  TransportPlan plan({path(transport::Kind::iscsi, "10.0.0.2")});
  plan.next();

  for (const char* text : {"", "evil.example", "10.0.0.2:", "10.0.0.2:0", "10.0.0.2:65536",
                           "10.0.0.2:1x", "[::1", "[10.0.0.2]:1", "::1", "10.0.0.2 "})
    EXPECT_FALSE(plan.redirect(text)) << text;
}

TEST(TransportPlan, UnderstandsIpv6) {
  std::string address;
  uint16_t port = 0;

  ASSERT_TRUE(parse_numeric_address("[2001:db8::1]:3262", address, port));

  EXPECT_EQ(address, "2001:db8::1");
  EXPECT_EQ(port, 3262);
}

}  // namespace
}  // namespace vjbod::initiator
