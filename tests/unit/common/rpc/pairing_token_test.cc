// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/pairing_token.h"

#include <gtest/gtest.h>

#include "common/base/random.h"

namespace vjbod::rpc {
namespace {

PairingToken sample() {
  PairingToken token;
  token.addresses = {"10.0.0.2", "fd00::2"};
  token.port = 7443;
  Random random(7);
  random.fill(token.fingerprint.bytes);
  random.fill(token.secret);
  return token;
}

TEST(PairingToken, ComesBackAsItWas) {
  PairingToken token = sample();
  Result<PairingToken> decoded = decode_token(*encode_token(token));
  ASSERT_TRUE(decoded) << decoded.error().text;
  EXPECT_EQ(decoded->addresses, token.addresses);
  EXPECT_EQ(decoded->port, token.port);
  EXPECT_EQ(decoded->fingerprint, token.fingerprint);
  EXPECT_EQ(decoded->secret, token.secret);
}

TEST(PairingToken, BlanksAroundItAreIgnored) {
  EXPECT_TRUE(decode_token(" \t" + *encode_token(sample()) + "\r\n"));
}

TEST(PairingToken, EveryTruncationIsRefused) {
  std::string text = *encode_token(sample());
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_FALSE(decode_token(text.substr(0, length))) << length;
}

TEST(PairingToken, EveryChangedCharacterIsRefused) {
  std::string text = *encode_token(sample());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(decode_token(changed)) << i;
  }
}

TEST(PairingToken, ErrorsNeverRepeatTheInput) {
  std::string text = *encode_token(sample());
  text.back() = text.back() == 'A' ? 'E' : 'A';
  Result<PairingToken> decoded = decode_token(text);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().text.find(text.substr(10, 20)), std::string::npos);
}

TEST(PairingToken, TooLongInputIsRefused) {
  EXPECT_FALSE(decode_token("vjbod1-" + std::string(token_text_bytes_max, 'A')));
}

TEST(PairingToken, MostAddressesThatFitStillFit) {
  PairingToken token = sample();
  token.addresses.assign(token_addresses_max, "2001:db8:1111:2222:3333:4444:5555:6666");
  Result<std::string> text = encode_token(token);
  ASSERT_TRUE(text);
  EXPECT_LE(text->size(), token_text_bytes_max);
  EXPECT_EQ(decode_token(*text)->addresses, token.addresses);
  token.addresses.emplace_back("10.0.0.1");
  EXPECT_FALSE(encode_token(token));
}

TEST(PairingToken, NeedsNumericAddressesAndAPort) {
  PairingToken token = sample();
  token.addresses = {"nas2"};
  EXPECT_FALSE(encode_token(token));
  token = sample();
  token.port = 0;
  EXPECT_FALSE(encode_token(token));
  token = sample();
  token.addresses.clear();
  EXPECT_FALSE(encode_token(token));
}

}  // namespace
}  // namespace vjbod::rpc
