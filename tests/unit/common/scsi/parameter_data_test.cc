// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <limits>

#include <gtest/gtest.h>

#include "common/base/random.h"
#include "common/scsi/capacity.h"
#include "common/scsi/lun.h"
#include "common/scsi/mode_page.h"
#include "common/scsi/report_luns.h"
#include "common/scsi/unmap_list.h"

namespace vjbod::scsi {
namespace {

template <typename Build>
std::vector<std::byte> built(Build build_into) {
  std::array<std::byte, 512> memory;
  memory.fill(std::byte{0xee});
  ByteWriter out(memory);
  build_into(out);
  EXPECT_TRUE(out.ok());
  return {out.result().begin(), out.result().end()};
}

TEST(Capacity, SixteenComesBackAsItWas) {
  const Capacity capacity{.blocks = uint64_t{1} << 40,
                          .block_bytes = 512,
                          .physical_block_exponent = 3,
                          .lowest_aligned_lba = 7,
                          .provisioning_management = true,
                          .unmapped_reads_zeros = true};
  const auto bytes = built([&](ByteWriter& out) { build_capacity_16(capacity, out); });
  EXPECT_EQ(bytes.size(), capacity_16_bytes);
  EXPECT_EQ(parse_capacity_16(bytes).value(), capacity);
}

TEST(Capacity, TenSaysAllOnesForWhatIsTooLarge) {
  const auto last_lba = [](uint64_t blocks) {
    const auto bytes = built(
        [&](ByteWriter& out) { build_capacity_10({.blocks = blocks, .block_bytes = 512}, out); });
    return load_big_endian<uint32_t>(bytes.data());
  };
  EXPECT_EQ(last_lba(0xffffffff), 0xfffffffe);
  EXPECT_EQ(last_lba(0x100000000), 0xffffffff);
  EXPECT_EQ(last_lba(0x100000001), 0xffffffff);
}

TEST(Capacity, ASizeThatCannotBeIsAnError) {
  const auto parse = [](uint64_t last, uint32_t block_bytes) {
    const auto bytes = built([&](ByteWriter& out) { out.u64(last).u32(block_bytes).zeros(20); });
    return parse_capacity_16(bytes);
  };
  EXPECT_EQ(parse(10, 0).error().code, Errc::bad_data);
  EXPECT_EQ(parse(std::numeric_limits<uint64_t>::max(), 512).error().code, Errc::bad_data);
  EXPECT_EQ(parse(std::numeric_limits<uint64_t>::max() / 512, 512).error().code, Errc::bad_data);
  EXPECT_TRUE(parse(std::numeric_limits<uint64_t>::max() / 512 - 1, 512).has_value());
}

TEST(Capacity, TwelveBytesOfAnOldDeviceAreEnough) {
  const auto bytes = built([](ByteWriter& out) { out.u64(99).u32(4096); });
  EXPECT_EQ(parse_capacity_16(bytes)->blocks, 100U);
  EXPECT_EQ(parse_capacity_16(ConstBytes(bytes).first(11)).error().code, Errc::short_data);
}

TEST(ModeData, ComesBackAsItWas) {
  ModeData data;
  data.write_protected = true;
  data.dpo_and_fua = true;
  data.block = {1000, 4096};
  data.caching = CachingPage{.write_cache_enabled = true};
  data.control = ControlPage{.task_set_per_nexus = true, .unrestricted_reordering = true};
  for (const CdbSize size : {CdbSize::six, CdbSize::ten}) {
    const auto bytes = built([&](ByteWriter& out) { build_mode_data(data, size, false, out); });
    EXPECT_EQ(parse_mode_data(bytes, size).value(), data);
    EXPECT_LE(bytes.size(), mode_data_bytes_max);
  }
}

TEST(ModeData, NothingIsChangeable) {
  ModeData data;
  data.caching = CachingPage{.write_cache_enabled = true};
  data.control = ControlPage{.task_set_per_nexus = true};
  const auto bytes =
      built([&](ByteWriter& out) { build_mode_data(data, CdbSize::six, true, out); });
  EXPECT_FALSE(parse_mode_data(bytes, CdbSize::six)->caching->write_cache_enabled);
  EXPECT_FALSE(parse_mode_data(bytes, CdbSize::six)->control->task_set_per_nexus);
}

TEST(ModeData, APageThatIsCutIsLeftOut) {
  ModeData data;
  data.write_protected = true;
  data.caching = CachingPage{.write_cache_enabled = true};
  const auto bytes =
      built([&](ByteWriter& out) { build_mode_data(data, CdbSize::six, false, out); });
  for (size_t length = 4; length < bytes.size(); ++length) {
    const auto parsed = parse_mode_data(ConstBytes(bytes).first(length), CdbSize::six);
    EXPECT_TRUE(parsed->write_protected);
    EXPECT_FALSE(parsed->caching.has_value());
  }
  EXPECT_EQ(parse_mode_data(ConstBytes(bytes).first(3), CdbSize::six).error().code,
            Errc::short_data);
}

TEST(ModeData, PagesWeDoNotKnowArePassedOver) {
  auto bytes = built([](ByteWriter& out) {
    out.u8(3 + 4 + 6 + 20).u8(0).u8(0).u8(0);
    out.u8(0x01).u8(2).u16(0xffff);            // another page
    out.u8(0x48).u8(0x01).u16(2).u16(0xffff);  // a subpage of the caching page
    out.u8(0x08).u8(18).u8(0x04).zeros(17);
  });
  EXPECT_TRUE(parse_mode_data(bytes, CdbSize::six)->caching->write_cache_enabled);
}

TEST(ReportLuns, TheListComesBackAsItWas) {
  const std::array<uint16_t, 3> numbers{0, 255, 300};
  const auto bytes = built([&](ByteWriter& out) { build_report_luns(numbers, out); });
  EXPECT_EQ(bytes.size(), report_luns_bytes(numbers.size()));
  const auto reported = parse_report_luns(bytes);
  ASSERT_EQ(reported->luns.size(), 3U);
  EXPECT_EQ(reported->list_bytes, 24U);
  for (size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(decode_lun(reported->luns[i]), numbers[i]);
}

TEST(ReportLuns, ACutListTellsItsWholeLength) {
  const std::array<uint16_t, 3> numbers{0, 1, 2};
  const auto bytes = built([&](ByteWriter& out) { build_report_luns(numbers, out); });
  const auto reported = parse_report_luns(ConstBytes(bytes).first(8 + 8 + 7));
  EXPECT_EQ(reported->luns.size(), 1U);
  EXPECT_EQ(reported->list_bytes, 24U);
}

TEST(Lun, OtherMethodsAndLevelsAreNotOurs) {
  LunAddress address = encode_lun(3);
  EXPECT_EQ(decode_lun(address), 3);
  address[7] = std::byte{1};
  EXPECT_EQ(decode_lun(address), std::nullopt);
  EXPECT_EQ(decode_lun({std::byte{1}, std::byte{3}}), std::nullopt);     // another bus
  EXPECT_EQ(decode_lun({std::byte{0xc1}, std::byte{1}}), std::nullopt);  // well known
}

TEST(UnmapList, ComesBackAsItWas) {
  const std::array<UnmapRange, 2> ranges{{{1, 2}, {uint64_t{1} << 40, 0xffffffff}}};
  const auto bytes = built([&](ByteWriter& out) { build_unmap_list(ranges, out); });
  EXPECT_EQ(bytes.size(), unmap_list_bytes(2));
  const auto list = UnmapList::parse(bytes);
  ASSERT_EQ(list->size(), 2U);
  EXPECT_EQ((*list)[0], ranges[0]);
  EXPECT_EQ((*list)[1], ranges[1]);
}

TEST(UnmapList, LengthsThatContradictEachOtherAreAnError) {
  const std::array<UnmapRange, 2> ranges{{{1, 2}, {3, 4}}};
  const auto good = built([&](ByteWriter& out) { build_unmap_list(ranges, out); });
  EXPECT_EQ(UnmapList::parse(ConstBytes(good).first(7)).error().code, Errc::short_data);
  EXPECT_EQ(UnmapList::parse(ConstBytes(good).first(good.size() - 1)).error().code, Errc::bad_data);
  auto wrong = good;
  wrong[3] = std::byte{33};
  EXPECT_EQ(UnmapList::parse(wrong).error().code, Errc::bad_data);
  wrong = good;
  store_big_endian<uint16_t>(&wrong[0], 0xffff);
  EXPECT_EQ(UnmapList::parse(wrong).error().code, Errc::bad_data);
}

TEST(UnmapList, AHalfDescriptorAtTheEndIsIgnored) {
  const auto bytes =
      built([](ByteWriter& out) { out.u16(6 + 24).u16(24).u32(0).u64(5).u32(6).u32(0).u64(7); });
  EXPECT_EQ(UnmapList::parse(bytes)->size(), 1U);
}

TEST(UnmapList, NoDescriptorsAreNoRanges) {
  std::array<std::byte, 8> bytes{};
  EXPECT_EQ(UnmapList::parse(bytes)->size(), 0U);
}

TEST(ParameterData, NoBytesCrashTheParsers) {
  Random random(4);
  for (int i = 0; i < 20000; ++i) {
    std::array<std::byte, 80> memory;
    random.fill(memory);
    memory[0] = std::byte{0};
    memory[2] = static_cast<std::byte>(random.below(2));
    const ConstBytes bytes = ConstBytes(memory).first(random.below(memory.size() + 1));
    (void)parse_capacity_10(bytes);
    (void)parse_capacity_16(bytes);
    (void)parse_mode_data(bytes, CdbSize::six);
    (void)parse_mode_data(bytes, CdbSize::ten);
    (void)parse_report_luns(bytes);
    if (const auto list = UnmapList::parse(bytes); list && list->size() > 0) {
      (void)(*list)[list->size() - 1];
    }
  }
}

}  // namespace
}  // namespace vjbod::scsi
