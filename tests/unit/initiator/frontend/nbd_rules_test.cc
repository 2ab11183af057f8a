// SPDX-License-Identifier: Apache-2.0
#include "initiator/frontend/nbd_rules.h"

#include <gtest/gtest.h>

#include "tests/support/memory_block_device.h"

namespace vjbod::initiator::nbd {
namespace {

constexpr uint64_t disk_bytes = uint64_t{8} << 30;

BlockGeometry disk() {
  return test::full_geometry(disk_bytes);
}
WireError judged(const RequestHeader& request, const BlockGeometry& geometry = disk(),
                 bool structured = true) {
  return check_request(request, geometry, structured).error;
}
RequestHeader request(Command command, uint64_t offset, uint32_t length, uint16_t flags = 0) {
  return {flags, command, 1, offset, length};
}

TEST(NbdRules, FullDiskAdvertisesEverything) {
  EXPECT_EQ(transmission_flags(disk(), true), 0b1101'1110'1101);
}

TEST(NbdRules, DontFragmentIsOfferedWithStructuredRepliesOnly) {
  EXPECT_EQ(transmission_flags(disk(), false) & transmission_flag::send_df, 0);
}

TEST(NbdRules, ReadOnlyDiskOffersNothingThatChangesIt) {
  BlockGeometry geometry = disk();
  geometry.read_only = true;
  const uint16_t flags = transmission_flags(geometry, true);
  EXPECT_NE(flags & transmission_flag::read_only, 0);
  EXPECT_EQ(flags & (transmission_flag::send_trim | transmission_flag::send_write_zeroes |
                     transmission_flag::send_fua),
            0);
}

TEST(NbdRules, PreferredBlockSizeIsAtLeastAPage) {
  EXPECT_EQ(block_sizes(test::full_geometry(disk_bytes, 512)).minimum_bytes, 512u);
  EXPECT_EQ(block_sizes(test::full_geometry(disk_bytes, 512)).preferred_bytes, 4096u);
  EXPECT_EQ(block_sizes(test::full_geometry(disk_bytes, 512)).maximum_bytes, 32u << 20);
}

TEST(NbdRules, RequestUpToTheLastByteIsTaken) {
  EXPECT_EQ(judged(request(Command::write, disk_bytes - 512, 512)), WireError::none);
}

TEST(NbdRules, WriteBeyondTheEndHasNoSpace) {
  EXPECT_EQ(judged(request(Command::write, disk_bytes - 512, 1024)), WireError::no_space);
  EXPECT_EQ(judged(request(Command::write, ~uint64_t{0} - 511, 512)), WireError::no_space);
  EXPECT_EQ(judged(request(Command::write_zeroes, disk_bytes, 512)), WireError::no_space);
}

TEST(NbdRules, ReadAndTrimBeyondTheEndAreInvalid) {
  EXPECT_EQ(judged(request(Command::read, disk_bytes, 512)), WireError::invalid);
  EXPECT_EQ(judged(request(Command::trim, disk_bytes - 512, 1024)), WireError::invalid);
}

TEST(NbdRules, UnalignedOffsetOrLengthIsInvalid) {
  EXPECT_EQ(judged(request(Command::read, 1, 512)), WireError::invalid);
  EXPECT_EQ(judged(request(Command::write, 512, 513)), WireError::invalid);
  EXPECT_EQ(judged(request(Command::trim, 512, 511)), WireError::invalid);
}

TEST(NbdRules, PayloadOfThirtyTwoMebibytesIsTheLargest) {
  EXPECT_EQ(judged(request(Command::write, 0, payload_bytes_max)), WireError::none);
  EXPECT_EQ(judged(request(Command::write, 0, payload_bytes_max + 512)), WireError::invalid);
  EXPECT_EQ(judged(request(Command::read, 0, payload_bytes_max + 512)), WireError::invalid);
  EXPECT_EQ(judged(request(Command::read, 0, payload_bytes_max + 512, command_flag::df)),
            WireError::overflow);
}

TEST(NbdRules, RequestsWithoutPayloadMayBeLonger) {
  const uint32_t nearly_four_gib = ~uint32_t{0} & ~uint32_t{511};
  EXPECT_EQ(judged(request(Command::trim, 0, nearly_four_gib)), WireError::none);
  EXPECT_EQ(judged(request(Command::write_zeroes, 0, nearly_four_gib)), WireError::none);
  EXPECT_EQ(judged(request(Command::cache, 0, nearly_four_gib)), WireError::none);
}

TEST(NbdRules, LengthOfZeroIsInvalid) {
  EXPECT_EQ(judged(request(Command::read, 0, 0)), WireError::invalid);
}

TEST(NbdRules, ReadOnlyDiskPermitsNoChange) {
  BlockGeometry geometry = disk();
  geometry.read_only = true;
  for (Command command : {Command::write, Command::trim, Command::write_zeroes}) {
    EXPECT_EQ(judged(request(command, 0, 512), geometry), WireError::not_permitted);
  }
  EXPECT_EQ(judged(request(Command::read, 0, 512), geometry), WireError::none);
  EXPECT_EQ(judged(request(Command::flush, 0, 0), geometry), WireError::none);
}

TEST(NbdRules, UnknownCommandAndUnofferedOnesAreInvalid) {
  EXPECT_EQ(judged(request(static_cast<Command>(99), 0, 512)), WireError::invalid);
  EXPECT_EQ(judged(request(Command::block_status, 0, 512)), WireError::invalid);
  BlockGeometry plain = disk();
  plain.trim = plain.write_zeroes = false;
  EXPECT_EQ(judged(request(Command::trim, 0, 512), plain), WireError::invalid);
  EXPECT_EQ(judged(request(Command::write_zeroes, 0, 512), plain), WireError::invalid);
}

TEST(NbdRules, FlagsAreTakenOnlyWhereTheyMeanSomething) {
  using namespace command_flag;
  for (Command command : {Command::read, Command::write, Command::trim, Command::cache}) {
    EXPECT_EQ(judged(request(command, 0, 512, fua)), WireError::none);
  }
  EXPECT_EQ(judged(request(Command::flush, 0, 0, fua)), WireError::none);
  EXPECT_EQ(judged(request(Command::write, 0, 512, no_hole)), WireError::invalid);
  EXPECT_EQ(judged(request(Command::write, 0, 512, df)), WireError::invalid);
  EXPECT_EQ(judged(request(Command::read, 0, 512, df), disk(), false), WireError::invalid);
  EXPECT_EQ(judged(request(Command::read, 0, 512, 1 << 15)), WireError::invalid);
  EXPECT_EQ(judged(request(Command::write_zeroes, 0, 512, fua | no_hole | fast_zero)),
            WireError::none);
}

TEST(NbdRules, FastZeroIsRefusedAtOnceWhenItWouldBeSlow) {
  BlockGeometry slow = disk();
  slow.fast_write_zeroes = false;
  EXPECT_EQ(judged(request(Command::write_zeroes, 0, 512, command_flag::fast_zero), slow),
            WireError::not_supported);
  EXPECT_EQ(judged(request(Command::write_zeroes, 0, 512), slow), WireError::none);
}

}  // namespace
}  // namespace vjbod::initiator::nbd
