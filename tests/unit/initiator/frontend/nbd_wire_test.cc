// SPDX-License-Identifier: Apache-2.0
#include "initiator/frontend/nbd_wire.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace vjbod::initiator::nbd {
namespace {

template <size_t N>
std::array<std::byte, N> bytes(const std::array<int, N>& values) {
  std::array<std::byte, N> out;
  for (size_t i = 0; i < N; ++i) out[i] = static_cast<std::byte>(values[i]);
  return out;
}

TEST(NbdWire, GreetingIsFixedNewstyleWithoutZeroes) {
  EXPECT_EQ(encode_greeting(), bytes<18>({'N', 'B', 'D', 'M', 'A', 'G', 'I', 'C', 'I', 'H', 'A',
                                          'V', 'E', 'O', 'P', 'T', 0x00, 0x03}));
}

TEST(NbdWire, OptionHeaderIsDecodedFromItsBytes) {
  const auto wire = bytes<16>({'I', 'H', 'A', 'V', 'E', 'O', 'P', 'T', 0, 0, 0, 7, 0, 0, 1, 2});
  const auto header = decode_option_header(wire);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->option, Option::go);
  EXPECT_EQ(header->length_bytes, 0x102u);
  EXPECT_EQ(encode_option_header(*header), wire);
}

TEST(NbdWire, OptionReplyHeaderCarriesItsMagicNumber) {
  const auto wire = encode_option_reply_header({Option::list, OptionReply::error_unsupported, 5});
  EXPECT_EQ(wire, bytes<20>({0x00, 0x03, 0xe8, 0x89, 0x04, 0x55, 0x65, 0xa9, 0, 0,
                             0,    3,    0x80, 0,    0,    1,    0,    0,    0, 5}));
  const auto back = decode_option_reply_header(wire);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->type, OptionReply::error_unsupported);
}

TEST(NbdWire, RequestIsDecodedFromItsBytes) {
  const auto wire =
      bytes<28>({0x25, 0x60, 0x95, 0x13, 0x00, 0x01, 0x00, 0x06, 1,    2,    3,    4,    5,   6,
                 7,    8,    0,    0,    0,    1,    0,    0,    0x10, 0x00, 0x00, 0x02, 0x0, 0x0});
  const auto request = decode_request(wire);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->flags, command_flag::fua);
  EXPECT_EQ(request->command, Command::write_zeroes);
  EXPECT_EQ(request->cookie, 0x0102030405060708u);
  EXPECT_EQ(request->offset_bytes, 0x100001000u);
  EXPECT_EQ(request->length_bytes, 0x20000u);
  EXPECT_EQ(encode_request(*request), wire);
}

TEST(NbdWire, AnyWrongBitOfAMagicNumberIsNoticed) {
  const auto request = encode_request({0, Command::read, 1, 0, 512});
  const auto option = encode_option_header({Option::abort, 0});
  for (size_t bit = 0; bit < 32; ++bit) {
    auto broken = request;
    broken[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_FALSE(decode_request(broken)) << bit;
  }
  for (size_t bit = 0; bit < 64; ++bit) {
    auto broken = option;
    broken[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_FALSE(decode_option_header(broken)) << bit;
  }
}

TEST(NbdWire, SimpleReplyHasTheErrorBeforeTheCookie) {
  std::array<std::byte, simple_reply_bytes> wire;
  encode_simple_reply(wire, {WireError::no_space, 9});
  EXPECT_EQ(wire, bytes<16>({0x67, 0x44, 0x66, 0x98, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 9}));
}

TEST(NbdWire, StructuredReplyMarksTheLastChunk) {
  std::array<std::byte, structured_reply_bytes> wire;
  encode_structured_reply(wire, {true, Chunk::error, 9, 6});
  EXPECT_EQ(wire,
            bytes<20>({0x66, 0x8e, 0x33, 0xef, 0, 1, 0x80, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 6}));
  encode_structured_reply(wire, {false, Chunk::offset_data, 9, 6});
  EXPECT_FALSE(decode_structured_reply(wire)->done);
}

TEST(NbdWire, EveryErrnoBecomesOneThatTheProtocolKnows) {
  EXPECT_EQ(wire_error(0), WireError::none);
  EXPECT_EQ(wire_error(EROFS), WireError::not_permitted);
  EXPECT_EQ(wire_error(EDQUOT), WireError::no_space);
  EXPECT_EQ(wire_error(EOPNOTSUPP), WireError::not_supported);
  EXPECT_EQ(wire_error(ESHUTDOWN), WireError::shutting_down);
  EXPECT_EQ(wire_error(ETIMEDOUT), WireError::io);
}

}  // namespace
}  // namespace vjbod::initiator::nbd
