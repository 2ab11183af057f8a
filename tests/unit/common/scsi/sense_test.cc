// SPDX-License-Identifier: Apache-2.0
#include "common/scsi/sense.h"

#include <array>

#include <gtest/gtest.h>

#include "common/base/random.h"

namespace vjbod::scsi {
namespace {

const Sense samples[] = {
    {},
    {SenseKey::unit_attention, asc::capacity_changed, false, {}, {}},
    {SenseKey::medium_error, asc::unrecovered_read_error, true, 0x12345678, {}},
    {SenseKey::illegal_request,
     asc::invalid_field_in_cdb,
     false,
     {},
     FieldPointer{.in_cdb = true, .byte = 1, .bit = 7}},
    {SenseKey::illegal_request,
     asc::invalid_field_in_parameter_list,
     false,
     {},
     FieldPointer{.in_cdb = false, .byte = 300, .bit = {}}},
};

TEST(Sense, TheFixedFormatComesBackAsItWas) {
  for (const Sense& sense : samples) {
    std::array<std::byte, fixed_sense_bytes> bytes;
    EXPECT_EQ(build_fixed_sense(sense, bytes), bytes.size());
    EXPECT_EQ(parse_sense(bytes).value(), sense);
  }
}

TEST(Sense, TheDescriptorFormatComesBackAsItWas) {
  for (Sense sense : samples) {
    if (sense.information) sense.information = 0x123456789abcdef0;
    std::array<std::byte, descriptor_sense_bytes_max> bytes;
    const size_t size = build_descriptor_sense(sense, bytes);
    EXPECT_EQ(parse_sense(ConstBytes(bytes).first(size)).value(), sense);
  }
}

TEST(Sense, AFixedFormatHasTheBytesOfTheStandard) {
  std::array<std::byte, fixed_sense_bytes> bytes;
  build_fixed_sense(samples[3], bytes);
  const std::array<unsigned, 18> expected{0x70, 0, 5, 0,    0, 0, 0,    10, 0,
                                          0,    0, 0, 0x24, 0, 0, 0xcf, 0,  1};
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(std::to_integer<unsigned>(bytes[i]), expected[i]) << i;
  }
}

TEST(Sense, AnInformationBeyond32BitsIsLeftOutOfTheFixedFormat) {
  Sense sense = samples[2];
  sense.information = 0x100000000;
  std::array<std::byte, fixed_sense_bytes> bytes;
  build_fixed_sense(sense, bytes);
  EXPECT_FALSE(parse_sense(bytes)->information.has_value());
}

TEST(Sense, ACutFixedFormatTellsWhatItStillHas) {
  std::array<std::byte, fixed_sense_bytes> bytes;
  build_fixed_sense(samples[3], bytes);
  EXPECT_EQ(parse_sense(ConstBytes(bytes).first(14))->additional, asc::invalid_field_in_cdb);
  EXPECT_FALSE(parse_sense(ConstBytes(bytes).first(14))->field.has_value());
  EXPECT_EQ(parse_sense(ConstBytes(bytes).first(8))->key, SenseKey::illegal_request);
  EXPECT_EQ(parse_sense(ConstBytes(bytes).first(7)).error().code, Errc::short_data);
}

TEST(Sense, AVendorFormatIsAnError) {
  std::array<std::byte, 18> bytes{};
  bytes[0] = std::byte{0x7f};
  EXPECT_EQ(parse_sense(bytes).error().code, Errc::bad_data);
}

TEST(Sense, NoBytesCrashTheParser) {
  Random random(2);
  for (int i = 0; i < 20000; ++i) {
    std::array<std::byte, 40> bytes;
    random.fill(bytes);
    bytes[0] = static_cast<std::byte>(0x70 + random.below(4));
    (void)parse_sense(ConstBytes(bytes).first(random.below(bytes.size() + 1)));
  }
}

TEST(Sense, PeopleGetTheNamesOfTheStandard) {
  EXPECT_EQ(describe({SenseKey::illegal_request, asc::lba_out_of_range, false, {}, {}}),
            "ILLEGAL REQUEST, LOGICAL BLOCK ADDRESS OUT OF RANGE (05/21/00)");
}

}  // namespace
}  // namespace vjbod::scsi
