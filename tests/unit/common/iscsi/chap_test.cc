// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/chap.h"

#include <type_traits>

#include <gtest/gtest.h>

#include "common/iscsi/binary_value.h"
#include "common/iscsi/errc.h"

namespace vjbod::iscsi {
namespace {

std::string response_text(ChapAlgorithm algorithm) {
  std::vector<std::byte> challenge(16);
  for (size_t i = 0; i < challenge.size(); ++i) challenge[i] = static_cast<std::byte>(i);
  const auto response = chap_response(algorithm, 0x27, Secret("correct horse battery"), challenge);
  return response ? encode_hex(response->view()) : response.error().text;
}

// Expected values from another implementation of the digests.
TEST(Chap, ComputesTheResponseOfEveryAlgorithm) {
  EXPECT_EQ(response_text(ChapAlgorithm::md5), "0x8932cabbad7c42bb3333a152d9788f08");
  EXPECT_EQ(response_text(ChapAlgorithm::sha1), "0x81a18461b50d21082ca558caba48c5b4e84832e0");
  EXPECT_EQ(response_text(ChapAlgorithm::sha256),
            "0x2d181eac18fb1d54a5a1e39e891eb1aba7a971f8974808a7549b834b912dbb3b");
  EXPECT_EQ(response_text(ChapAlgorithm::sha3_256),
            "0x2d50da028db8adfeff0497c77b461f7b1646ef0851a699e3ba48f56857697720");
}

TEST(Chap, KnowsItsAlgorithmsByTheirIanaNumbers) {
  EXPECT_EQ(chap_algorithm(5), ChapAlgorithm::md5);
  EXPECT_EQ(chap_algorithm(6), ChapAlgorithm::sha1);
  EXPECT_EQ(chap_algorithm(7), ChapAlgorithm::sha256);
  EXPECT_EQ(chap_algorithm(8), ChapAlgorithm::sha3_256);
  for (const uint64_t number : {uint64_t{0}, uint64_t{4}, uint64_t{9}, uint64_t{261}}) {
    EXPECT_EQ(chap_algorithm(number), std::nullopt);
  }
}

TEST(Chap, ComparesWholeValuesOnly) {
  EXPECT_TRUE(equal_constant_time(as_bytes("abc"), as_bytes("abc")));
  EXPECT_FALSE(equal_constant_time(as_bytes("abc"), as_bytes("abd")));
  EXPECT_FALSE(equal_constant_time(as_bytes("abc"), as_bytes("ab")));
}

TEST(ChapSecret, IsCopiedOnPurposeOnly) {
  static_assert(!std::is_copy_constructible_v<Secret>);
  Secret secret("0123456789ab");
  Secret copy = secret.copy();
  Secret moved = std::move(secret);
  EXPECT_TRUE(moved.same_as(copy));
  EXPECT_FALSE(moved.same_as(Secret("0123456789ac")));
}

TEST(ChapSecret, MustHaveTwelveBytes) {
  EXPECT_TRUE(check_secret("0123456789ab"));
  const Status checked = check_secret("0123456789a");
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Errc::authentication);
  EXPECT_EQ(checked.error().text.find("0123456789a"), std::string::npos);
}

TEST(ChapSecret, MayHave255BytesAndAnyPrintableCharacter) {
  EXPECT_TRUE(check_secret(std::string(255, 's')));
  EXPECT_FALSE(check_secret(std::string(256, 's')));
  EXPECT_TRUE(check_secret("pass # word \xc3\xa4\xc3\xb6\xc3\xbc"));
  EXPECT_FALSE(check_secret("0123456789ab\n"));
}

}  // namespace
}  // namespace vjbod::iscsi
