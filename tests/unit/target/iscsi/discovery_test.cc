// SPDX-License-Identifier: Apache-2.0
#include "target/iscsi/discovery.h"

#include <gtest/gtest.h>

namespace vjbod::target {
namespace {

DiscoveryScope scope() {
  DiscoveryScope scope;
  scope.discovery_session = true;
  scope.targets = {"iqn.a:one", "iqn.a:two"};
  scope.reached_address = "10.0.0.2:3260";
  return scope;
}

std::string text(std::string_view pairs) {  // '|' stands for NUL
  std::string out(pairs);
  for (char& c : out) c = c == '|' ? '\0' : c;
  return out;
}

TEST(Discovery, SendTargetsAllListsEveryTargetWithTheReachedAddress) {
  const auto answer = answer_text(as_bytes(text("SendTargets=All|")), scope());
  ASSERT_TRUE(answer);
  EXPECT_EQ(*answer, text("TargetName=iqn.a:one|TargetAddress=10.0.0.2:3260,1|"
                          "TargetName=iqn.a:two|TargetAddress=10.0.0.2:3260,1|"));
}

TEST(Discovery, ATargetTheAskerMayNotUseIsNotThere) {
  const auto answer = answer_text(as_bytes(text("SendTargets=iqn.a:secret|")), scope());
  ASSERT_TRUE(answer);
  EXPECT_EQ(*answer, "");
}

TEST(Discovery, AllIsRejectedInANormalSessionAndEmptyMeansItsOwnTarget) {
  DiscoveryScope normal = scope();
  normal.discovery_session = false;
  normal.own_target = "iqn.a:two";
  EXPECT_EQ(*answer_text(as_bytes(text("SendTargets=All|")), normal), text("SendTargets=Reject|"));
  EXPECT_EQ(*answer_text(as_bytes(text("SendTargets=|")), normal),
            text("TargetName=iqn.a:two|TargetAddress=10.0.0.2:3260,1|"));
}

TEST(Discovery, AnUnknownKeyIsNotUnderstood) {
  EXPECT_EQ(*answer_text(as_bytes(text("Colour=blue|")), scope()), text("Colour=NotUnderstood|"));
}

TEST(Discovery, TextWithoutAnEqualsSignIsAnError) {
  EXPECT_FALSE(answer_text(as_bytes(text("SendTargets|")), scope()));
}

TEST(Discovery, TellsOnlyAddressesThatTheAskerCanReach) {
  EXPECT_TRUE(worth_advertising("10.0.1.2:3260", "10.0.0.2:3260"));
  EXPECT_FALSE(worth_advertising("127.0.0.1:3260", "10.0.0.2:3260"));
  EXPECT_FALSE(worth_advertising("10.0.1.2:3260", "127.0.0.1:3260"));
  EXPECT_FALSE(worth_advertising("[fe80::1]:3260", "10.0.0.2:3260"));
  EXPECT_FALSE(worth_advertising("169.254.1.1:3260", "10.0.0.2:3260"));
  EXPECT_FALSE(worth_advertising("[::]:3260", "10.0.0.2:3260"));
  EXPECT_TRUE(worth_advertising("[2001:db8::1]:3260", "10.0.0.2:3260"));
}

}  // namespace
}  // namespace vjbod::target
