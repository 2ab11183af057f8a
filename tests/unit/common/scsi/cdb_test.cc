// SPDX-License-Identifier: Apache-2.0
#include "common/scsi/cdb.h"

#include <gtest/gtest.h>

#include "common/base/random.h"

namespace vjbod::scsi {
namespace {

Cdb bytes_of(std::initializer_list<unsigned> bytes) {
  Cdb cdb{};
  std::transform(bytes.begin(), bytes.end(), cdb.begin(),
                 [](unsigned b) { return static_cast<std::byte>(b); });
  return cdb;
}

std::error_code error_of(const Cdb& cdb) {
  const auto command = decode_cdb(cdb);
  return command ? std::error_code{} : command.error().code;
}

struct Golden {
  Command command;
  Cdb cdb;
};

const Golden golden[] = {
    {TestUnitReady{}, bytes_of({0x00})},
    {RequestSense{.descriptor_format = true, .allocation_length = 252},
     bytes_of({0x03, 0x01, 0, 0, 252})},
    {Inquiry{.vital_product_data = true, .page_code = 0x83, .allocation_length = 0x1234},
     bytes_of({0x12, 0x01, 0x83, 0x12, 0x34})},
    {ModeSense{.size = CdbSize::six,
               .disable_block_descriptors = true,
               .page_control = 2,
               .page_code = 0x3f,
               .subpage_code = 0xff,
               .allocation_length = 192},
     bytes_of({0x1a, 0x08, 0xbf, 0xff, 192})},
    {ModeSense{.size = CdbSize::ten, .page_code = 0x08, .allocation_length = 0x0102},
     bytes_of({0x5a, 0, 0x08, 0, 0, 0, 0, 0x01, 0x02})},
    {StartStopUnit{.immediate = true, .power_condition = 3, .no_flush = true, .start = true},
     bytes_of({0x1b, 0x01, 0, 0, 0x35})},
    {ReadCapacity10{}, bytes_of({0x25})},
    {ReadCapacity16{.allocation_length = 32},
     bytes_of({0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32})},
    {ReportLuns{.select_report = 2, .allocation_length = 0x01020304},
     bytes_of({0xa0, 0, 2, 0, 0, 0, 1, 2, 3, 4})},
    {ReportSupportedOperationCodes{.return_timeouts = true,
                                   .reporting_options = 2,
                                   .requested_opcode = 0x9e,
                                   .requested_service_action = 0x10,
                                   .allocation_length = 512},
     bytes_of({0xa3, 0x0c, 0x82, 0x9e, 0, 0x10, 0, 0, 2, 0})},
    {Read{.size = CdbSize::six, .lba = 0x1f2345, .blocks = 256},
     bytes_of({0x08, 0x1f, 0x23, 0x45, 0})},
    {Write{.size = CdbSize::six, .lba = 1, .blocks = 255}, bytes_of({0x0a, 0, 0, 1, 255})},
    {Read{.size = CdbSize::ten,
          .protect = 5,
          .disable_page_out = true,
          .force_unit_access = true,
          .lba = 0x01020304,
          .blocks = 0x0506},
     bytes_of({0x28, 0xb8, 1, 2, 3, 4, 0, 5, 6})},
    {Write{
         .size = CdbSize::twelve, .force_unit_access = true, .lba = 0xfffffffe, .blocks = 0x10203},
     bytes_of({0xaa, 0x08, 0xff, 0xff, 0xff, 0xfe, 0, 1, 2, 3})},
    {Write{.size = CdbSize::sixteen, .lba = 0x0102030405060708, .blocks = 0x090a0b0c},
     bytes_of({0x8a, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})},
    {Verify{.size = CdbSize::ten, .byte_check = 3, .lba = 2, .blocks = 1},
     bytes_of({0x2f, 0x06, 0, 0, 0, 2, 0, 0, 1})},
    {Verify{.size = CdbSize::sixteen,
            .disable_page_out = true,
            .byte_check = 1,
            .lba = 2,
            .blocks = 1},
     bytes_of({0x8f, 0x12, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1})},
    {SynchronizeCache{.size = CdbSize::sixteen, .immediate = true, .lba = 1, .blocks = 2},
     bytes_of({0x91, 0x02, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2})},
    {WriteSame{.size = CdbSize::ten, .unmap = true, .lba = 1, .blocks = 2},
     bytes_of({0x41, 0x08, 0, 0, 0, 1, 0, 0, 2})},
    {WriteSame{
         .size = CdbSize::sixteen, .anchor = true, .no_data_out = true, .lba = 1, .blocks = 2},
     bytes_of({0x93, 0x11, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2})},
    {Unmap{.anchor = true, .parameter_list_length = 24}, bytes_of({0x42, 1, 0, 0, 0, 0, 0, 0, 24})},
};

TEST(Cdb, EveryCommandHasTheBytesOfTheStandard) {
  for (const Golden& one : golden) EXPECT_EQ(encode(one.command), one.cdb);
}

TEST(Cdb, TheBytesOfTheStandardAreTheCommand) {
  for (const Golden& one : golden) {
    const auto command = decode_cdb(one.cdb);
    ASSERT_TRUE(command.has_value()) << command.error().text;
    EXPECT_EQ(*command, one.command);
  }
}

TEST(Cdb, ReservedBitsAreIgnored) {
  EXPECT_EQ(*decode_cdb(bytes_of({0x25, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xfe, 0})),
            Command{ReadCapacity10{}});
  EXPECT_EQ(*decode_cdb(bytes_of({0x28, 0x07, 0, 0, 0, 1, 0xff, 0, 1})),
            (Command{Read{.size = CdbSize::ten, .lba = 1, .blocks = 1}}));
}

TEST(Cdb, ACutCdbIsAnError) {
  for (const Golden& one : golden) {
    const size_t needed = cdb_bytes(one.cdb[0]);
    for (size_t length = 0; length < needed; ++length) {
      const auto command = decode_cdb(ConstBytes(one.cdb).first(length));
      ASSERT_FALSE(command.has_value());
      EXPECT_EQ(command.error().code, Errc::short_cdb);
    }
    EXPECT_TRUE(decode_cdb(ConstBytes(one.cdb).first(needed)).has_value());
  }
}

TEST(Cdb, WhatWeDoNotHaveIsToldApartFromItsServiceActions) {
  EXPECT_EQ(error_of(bytes_of({0x16})), Errc::unknown_opcode);  // RESERVE(6)
  EXPECT_EQ(error_of(bytes_of({0x7f})), Errc::unknown_opcode);  // variable length
  EXPECT_EQ(error_of(bytes_of({0xff})), Errc::unknown_opcode);  // vendor
  EXPECT_EQ(error_of(bytes_of({0x9e, 0x12})), Errc::unknown_service_action);
  EXPECT_EQ(error_of(bytes_of({0xa3, 0x05})), Errc::unknown_service_action);
}

TEST(Cdb, NoBytesCrashTheDecoder) {
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    Cdb cdb;
    random.fill(cdb);
    const auto command = decode_cdb(ConstBytes(cdb).first(random.below(cdb.size() + 1)));
    if (!command) continue;
    EXPECT_EQ(*decode_cdb(encode(*command)), *command);
  }
}

TEST(Cdb, TheSmallestCdbHoldsTheRange) {
  EXPECT_EQ(smallest_cdb(0xffffffff, 0xffff), CdbSize::ten);
  EXPECT_EQ(smallest_cdb(0x100000000, 1), CdbSize::sixteen);
  EXPECT_EQ(smallest_cdb(0, 0x10000), CdbSize::sixteen);
}

TEST(CdbDeathTest, AFieldThatDoesNotFitIsABug) {
  EXPECT_DEATH(encode(Read{.size = CdbSize::ten, .lba = 0x100000000}), "16-byte");
  EXPECT_DEATH(encode(Write{.size = CdbSize::ten, .blocks = 0x10000}), "longer");
  EXPECT_DEATH(encode(Read{.size = CdbSize::six, .lba = 0x200000, .blocks = 1}), "six-byte");
}

}  // namespace
}  // namespace vjbod::scsi
