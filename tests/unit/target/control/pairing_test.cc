// SPDX-License-Identifier: Apache-2.0
#include "target/control/pairing.h"

#include <gtest/gtest.h>

#include "common/base/random.h"
#include "common/rpc/errc.h"

namespace vjbod::target {
namespace {

using namespace std::chrono_literals;

class PairingDeskTest : public testing::Test {
 protected:
  rpc::PairingSecret offer(Duration ttl = 10min) {
    return desk_.offer(now_, ttl, [this](Bytes bytes) { random_.fill(bytes); });
  }
  bool present(const rpc::PairingSecret& secret, const rpc::Fingerprint& host) {
    Status status = desk_.present(secret, host, now_);
    EXPECT_TRUE(status || status.error().code == rpc::Errc::authentication);
    return status.has_value();
  }
  static rpc::Fingerprint host(uint8_t number) {
    rpc::Fingerprint fingerprint;
    fingerprint.bytes.fill(std::byte{number});
    return fingerprint;
  }

  Random random_{1};
  TimePoint now_{};
  PairingDesk desk_;
  const rpc::PairingSecret wrong_{};
};

TEST_F(PairingDeskTest, TheRightSecretIsTaken) {
  EXPECT_TRUE(present(offer(), host(1)));
}

TEST_F(PairingDeskTest, NothingIsTakenWithoutAnOffer) {
  EXPECT_FALSE(present(wrong_, host(1)));
  EXPECT_FALSE(desk_.present({}, host(1), now_));
}

TEST_F(PairingDeskTest, ASecretOfAnotherLengthIsWrong) {
  rpc::PairingSecret secret = offer();
  EXPECT_FALSE(desk_.present(ConstBytes(secret).first(15), host(1), now_));
}

TEST_F(PairingDeskTest, AnOfferExpires) {
  rpc::PairingSecret secret = offer(10min);
  now_ += 10min - 1ns;
  EXPECT_TRUE(present(secret, host(1)));
  now_ += 1ns;
  EXPECT_FALSE(present(secret, host(1)));
}

TEST_F(PairingDeskTest, FourWrongTriesAreForgiven) {
  rpc::PairingSecret secret = offer();
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(present(wrong_, host(1)));
  EXPECT_TRUE(present(secret, host(1)));
}

TEST_F(PairingDeskTest, FiveWrongTriesAndItIsGone) {
  rpc::PairingSecret secret = offer();
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(present(wrong_, host(1)));
  EXPECT_FALSE(present(secret, host(1)));
}

TEST_F(PairingDeskTest, ASecretIsForOneHostOnly) {
  rpc::PairingSecret secret = offer();
  ASSERT_TRUE(present(secret, host(1)));
  desk_.use(secret, host(1));
  EXPECT_FALSE(present(secret, host(2)));
  EXPECT_EQ(desk_.open_offers(now_), 0U);
}

TEST_F(PairingDeskTest, AHostWhoseAnswerWasLostMayAskAgain) {
  rpc::PairingSecret secret = offer();
  desk_.use(secret, host(1));
  EXPECT_TRUE(present(secret, host(1)));
}

TEST_F(PairingDeskTest, AUsedSecretIsGoneOnceAHostWasUnpaired) {
  rpc::PairingSecret used = offer();
  rpc::PairingSecret open = offer();
  desk_.use(used, host(1));

  desk_.forget_used();

  EXPECT_FALSE(present(used, host(1)));
  EXPECT_TRUE(present(open, host(1)));
}

TEST_F(PairingDeskTest, APairingThatFailedDoesNotUseTheSecretUp) {
  rpc::PairingSecret secret = offer();
  EXPECT_TRUE(present(secret, host(1)));
  EXPECT_TRUE(present(secret, host(2)));
}

TEST_F(PairingDeskTest, TheOldestOfferMakesWay) {
  rpc::PairingSecret first = offer();
  for (size_t i = 0; i < PairingDesk::offers_max; ++i) offer();
  EXPECT_EQ(desk_.open_offers(now_), PairingDesk::offers_max);
  EXPECT_FALSE(present(first, host(1)));
}

}  // namespace
}  // namespace vjbod::target
