// SPDX-License-Identifier: Apache-2.0
#include "common/base/crc32c.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace vjbod {
namespace {

std::vector<std::byte> bytes_of(size_t count, uint8_t first, int step) {
  std::vector<std::byte> out(count);
  for (size_t i = 0; i < count; ++i) {
    out[i] = static_cast<std::byte>(first + static_cast<int>(i) * step);
  }
  return out;
}

// RFC 7143 appendix A.4; its bytes on the wire are those of the number in little-endian order.
TEST(Crc32c, GivesTheRfcsExamples) {
  EXPECT_EQ(crc32c(bytes_of(32, 0, 0)), 0x8a9136aaU);
  EXPECT_EQ(crc32c(bytes_of(32, 0xff, 0)), 0x62a8ab43U);
  EXPECT_EQ(crc32c(bytes_of(32, 0, 1)), 0x46dd794eU);
  EXPECT_EQ(crc32c(bytes_of(32, 31, -1)), 0x113fdb5cU);
}

TEST(Crc32c, GivesTheRfcsExampleOfACommand) {
  // A SCSI Command PDU for a READ(10): appendix A.4's last example.
  std::array<std::byte, 48> command{};
  command[0] = std::byte{0x01};
  command[1] = std::byte{0xc0};
  command[16] = std::byte{0x14};
  command[22] = std::byte{0x04};
  command[27] = std::byte{0x14};
  command[31] = std::byte{0x18};
  command[32] = std::byte{0x28};
  command[40] = std::byte{0x02};
  EXPECT_EQ(crc32c(command), 0xd9963a56U);
}

TEST(Crc32c, OfNothingIsZero) {
  EXPECT_EQ(crc32c({}), 0U);
  EXPECT_EQ(Crc32c().value(), 0U);
}

TEST(Crc32c, RunsOverPartsAsOverTheWhole) {
  const auto whole = bytes_of(100, 3, 7);
  for (size_t split = 0; split <= whole.size(); ++split) {
    Crc32c crc;
    crc.add(ConstBytes(whole).first(split));
    (void)crc.value();
    crc.add(ConstBytes(whole).subspan(split));
    EXPECT_EQ(crc.value(), crc32c(whole));
  }
}

}  // namespace
}  // namespace vjbod
