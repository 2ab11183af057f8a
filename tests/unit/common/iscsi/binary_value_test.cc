// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/binary_value.h"

#include <gtest/gtest.h>

#include "common/iscsi/errc.h"

namespace vjbod::iscsi {
namespace {

std::string decoded(std::string_view value, size_t bytes_max = 64) {
  const auto bytes = decode_binary_value(value, bytes_max);
  return bytes ? std::string(as_text(*bytes)) : "error: " + bytes.error().text;
}

TEST(BinaryValue, DecodesHexadecimalInEitherCase) {
  EXPECT_EQ(decoded("0x6162634A"), "abcJ");
  EXPECT_EQ(decoded("0X6162634a"), "abcJ");
}

TEST(BinaryValue, DecodesBase64WithEachPadding) {
  EXPECT_EQ(decoded("0bYWJj"), "abc");
  EXPECT_EQ(decoded("0bYWI="), "ab");
  EXPECT_EQ(decoded("0BYQ=="), "a");
  EXPECT_EQ(decoded("0b+/+/"), "\xfb\xff\xbf");
}

TEST(BinaryValue, RefusesWhatIsNotBinary) {
  for (const char* value :
       {"", "0", "0x", "0b", "0x123", "0xzz", "0x12 3", "616263", "0bYWJ", "0bYW=j",
        "0b====", "0bY===", "0bYQ==YQ==", "0bYW\tj", "0bYR==", "0bYWK=", "0b=", "x41"}) {
    const auto bytes = decode_binary_value(value, 64);
    ASSERT_FALSE(bytes) << value;
    EXPECT_EQ(bytes.error().code, Errc::bad_value) << value;
  }
}

TEST(BinaryValue, ChecksTheLengthBeforeItDecodes) {
  EXPECT_EQ(decoded("0x61626364", 4), "abcd");
  EXPECT_FALSE(decode_binary_value("0x61626364", 3));
  EXPECT_EQ(decoded("0bYWJjZA==", 4), "abcd");
  EXPECT_FALSE(decode_binary_value("0bYWJjZA==", 3));
  // Too long comes before wrong characters: nothing of it was looked at.
  const auto bytes = decode_binary_value("0xzzzzzzzz", 3);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().text, "binary value has 4 bytes, limit 3");
}

TEST(BinaryValue, EncodesWhatItDecodes) {
  for (size_t size = 1; size < 70; ++size) {
    std::vector<std::byte> bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 37 + size);
    EXPECT_EQ(decode_binary_value(encode_hex(bytes), size), bytes);
    EXPECT_EQ(decode_binary_value(encode_base64(bytes), size), bytes);
  }
}

}  // namespace
}  // namespace vjbod::iscsi
