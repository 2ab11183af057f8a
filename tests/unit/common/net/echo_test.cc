// SPDX-License-Identifier: Apache-2.0
#include "common/net/echo.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace vjbod::net {
namespace {

std::optional<Echo::Answer> answer_of(Echo& echo) {
  for (int tries = 0; tries < 20; ++tries) {
    if (auto answer = echo.read()) return answer;
    pollfd wait{echo.fd(), POLLIN, 0};
    (void)poll(&wait, 1, 100);
  }
  return std::nullopt;
}

TEST(Echo, AnAnswerIsAsLargeAsItsRequest) {
  for (const char* address : {"127.0.0.1", "::1"}) {
    auto echo = Echo::open(address, "", "");
    if (!echo) GTEST_SKIP() << echo.error().text;
    for (uint32_t bytes : {100u, 1500u, 9000u}) {
      auto sent = echo->send(static_cast<uint16_t>(bytes), bytes);
      if (!sent) GTEST_SKIP() << address << ": " << sent.error().text;
      const auto answer = answer_of(*echo);
      ASSERT_TRUE(answer) << address;
      EXPECT_EQ(answer->sequence, bytes);
      EXPECT_EQ(answer->packet_bytes, bytes);
    }
  }
}

TEST(Echo, WhatIsLargerThanTheWayIsRefusedAndNotCut) {
  auto echo = Echo::open("127.0.0.1", "127.0.0.1", "");
  if (!echo) GTEST_SKIP() << echo.error().text;
  EXPECT_FALSE(echo->send(1, 20));
  EXPECT_FALSE(echo->send(1, 70000));
}

TEST(Echo, NamesAreNoAddresses) {
  EXPECT_FALSE(Echo::open("localhost", "", ""));
}

}  // namespace
}  // namespace vjbod::net
