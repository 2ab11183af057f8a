// SPDX-License-Identifier: Apache-2.0
#include "common/base/bytes.h"

#include <array>

#include <gtest/gtest.h>

namespace vjbod {
namespace {

TEST(Bytes, NumbersAreBigEndianInEveryWidth) {
  std::array<std::byte, 24> bytes{};
  ByteWriter out(bytes);
  out.u8(0x01)
      .u16(0x0203)
      .u24(0x040506)
      .u32(0x0708090a)
      .u48(0x0b0c0d0e0f10)
      .u64(0x1112131415161718);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out.written(), bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(bytes[i], std::byte(i + 1));

  ByteReader in(bytes);
  EXPECT_EQ(in.u8(), 0x01);
  EXPECT_EQ(in.u16(), 0x0203);
  EXPECT_EQ(in.u24(), 0x040506U);
  EXPECT_EQ(in.u32(), 0x0708090aU);
  EXPECT_EQ(in.u48(), 0x0b0c0d0e0f10U);
  EXPECT_EQ(in.u64(), 0x1112131415161718U);
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(in.remaining(), 0U);
}

TEST(ByteReader, ReadingBeyondTheEndGivesZeroFromThenOn) {
  const std::array<std::byte, 3> bytes = {std::byte{1}, std::byte{2}, std::byte{3}};
  ByteReader in(bytes);
  EXPECT_EQ(in.u16(), 0x0102);
  EXPECT_EQ(in.u16(), 0);
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(in.u8(), 0) << "the byte that was left is not given out after an error";
  EXPECT_TRUE(in.bytes(1).empty());
  in.skip(0);
  EXPECT_FALSE(in.ok());
}

TEST(ByteReader, TakesExactlyWhatIsThere) {
  const std::array<std::byte, 3> bytes = {std::byte{1}, std::byte{2}, std::byte{3}};
  ByteReader in(bytes);
  EXPECT_EQ(in.bytes(3).size(), 3U);
  EXPECT_TRUE(in.bytes(0).empty());
  EXPECT_TRUE(in.ok());
}

TEST(ByteWriter, WritingBeyondTheEndDoesNothingFromThenOn) {
  std::array<std::byte, 3> bytes{};
  ByteWriter out(bytes);
  out.u16(0x0102).u16(0x0304).u8(0x05);
  EXPECT_FALSE(out.ok());
  EXPECT_EQ(out.written(), 2U);
  EXPECT_EQ(bytes[2], std::byte{0});
}

TEST(ByteWriter, CopiesBytesAndFillsWithZeros) {
  std::array<std::byte, 5> bytes;
  bytes.fill(std::byte{0xee});
  ByteWriter out(bytes);
  out.bytes(as_bytes("abc")).zeros(2).bytes({});
  EXPECT_TRUE(out.ok());
  EXPECT_EQ(as_text(out.result()), std::string_view("abc\0\0", 5));
  EXPECT_FALSE(out.zeros(1).ok());
}

}  // namespace
}  // namespace vjbod
