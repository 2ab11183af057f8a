// SPDX-License-Identifier: Apache-2.0
#include "common/transport/iser/iser_wire.h"

#include <vector>

#include <gtest/gtest.h>

#include "common/transport/rdma_errc.h"

namespace vjbod::transport {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(IserHeader, StandsOnTheWireAsTheRfcDrawsIt) {
  std::array<std::byte, iser_header_bytes> wire;
  encode_iser_header(
      {RemoteBuffer{0x01020304, 0x1112131415161718}, RemoteBuffer{0x21222324, 0x3132333435363738}},
      wire);
  EXPECT_EQ(std::vector<std::byte>(wire.begin(), wire.end()),
            bytes_of({0x1c, 0,    0,    0,    0x01, 0x02, 0x03, 0x04, 0x11, 0x12,
                      0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24,
                      0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38}));
}

TEST(IserHeader, EveryCombinationOfKeysComesBack) {
  for (int keys = 0; keys < 4; ++keys) {
    IserHeader header;
    if ((keys & 1) != 0) header.write = RemoteBuffer{7, 0xffffffffffffffff};
    if ((keys & 2) != 0) header.read = RemoteBuffer{0xffffffff, 8};
    std::array<std::byte, iser_header_bytes> wire;
    encode_iser_header(header, wire);
    EXPECT_EQ(decode_iser_header(wire), header);
  }
}

TEST(IserHeader, AKeyWithoutItsFlagIsIgnored) {
  std::array<std::byte, iser_header_bytes> wire;
  encode_iser_header({RemoteBuffer{7, 8}, RemoteBuffer{9, 10}}, wire);
  wire[0] = std::byte{0x10};
  EXPECT_EQ(decode_iser_header(wire), IserHeader{});
}

TEST(IserHeader, AShortMessageIsAnError) {
  const std::vector<std::byte> wire(iser_header_bytes - 1, std::byte{0x10});
  for (size_t size = 0; size <= wire.size(); ++size) {
    const auto decoded = decode_iser_header(ConstBytes(wire).first(size));
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().code, RdmaErrc::bad_length);
  }
}

TEST(IserHeader, AHelloIsOutOfStateAndOtherTypesAreUnknown) {
  std::array<std::byte, iser_header_bytes> wire{};
  for (int type = 0; type < 16; ++type) {
    wire[0] = static_cast<std::byte>(type << 4);
    const auto decoded = decode_iser_header(wire);
    EXPECT_EQ(decoded.has_value(), type == 1) << type;
    if (decoded) continue;
    const bool hello = type == 2 || type == 3;
    EXPECT_EQ(decoded.error().code, hello ? RdmaErrc::out_of_state : RdmaErrc::bad_header) << type;
  }
}

TEST(CmPrivateData, OfLinuxInitiatorsIsUnderstood) {
  // Four bytes, then whatever the connection manager fills up with.
  std::vector<std::byte> bytes(56);
  bytes[0] = std::byte{0x80};
  EXPECT_EQ(
      decode_cm_private_data(bytes),
      (CmPrivateData{.zero_based_addresses = false, .send_with_invalidate = true, .own = {}}));
  bytes[0] = std::byte{0xc0};
  EXPECT_EQ(decode_cm_private_data(ConstBytes(bytes).first(4)), CmPrivateData{});
}

TEST(CmPrivateData, OfOurOwnEndsSaysWhatIsPosted) {
  CmPrivateData data;
  data.send_with_invalidate = true;
  data.own = CmPrivateData::Own{16384, 192};
  std::vector<std::byte> wire;
  const auto encoded = encode_cm_private_data(data);
  wire.assign(encoded.begin(), encoded.end());
  EXPECT_EQ(decode_cm_private_data(wire), data);
  wire.resize(56);
  EXPECT_EQ(decode_cm_private_data(wire), data);
}

TEST(CmPrivateData, NoneIsAnError) {
  const std::vector<std::byte> zeros(56);
  for (const size_t size : {size_t{0}, size_t{3}, size_t{4}, size_t{56}}) {
    const auto decoded = decode_cm_private_data(ConstBytes(zeros).first(size));
    ASSERT_FALSE(decoded) << size;
    EXPECT_EQ(decoded.error().code, RdmaErrc::bad_private_data);
  }
}

TEST(CmPrivateData, AShortOneIsAnError) {
  EXPECT_FALSE(decode_cm_private_data(bytes_of({0x80, 0, 0})));
}

TEST(CmPrivateData, OurMarkWithoutSenseIsAnError) {
  CmPrivateData data;
  data.own = CmPrivateData::Own{16384, 192};
  auto wire = encode_cm_private_data(data);
  EXPECT_FALSE(decode_cm_private_data(ConstBytes(wire).first(16)));
  data.own = CmPrivateData::Own{8191, 192};
  EXPECT_FALSE(decode_cm_private_data(encode_cm_private_data(data)));
  data.own = CmPrivateData::Own{8192, 0};
  EXPECT_FALSE(decode_cm_private_data(encode_cm_private_data(data)));
}

TEST(CmPrivateData, ALaterVersionOfOursIsTakenForAStranger) {
  CmPrivateData data;
  data.own = CmPrivateData::Own{16384, 192};
  auto wire = encode_cm_private_data(data);
  wire[8] = std::byte{2};
  EXPECT_EQ(decode_cm_private_data(wire), CmPrivateData{});
}

}  // namespace
}  // namespace vjbod::transport
