// SPDX-License-Identifier: Apache-2.0
#include "common/scsi/inquiry.h"

#include <array>

#include <gtest/gtest.h>

#include "common/base/random.h"
#include "common/scsi/cache_id_page.h"

namespace vjbod::scsi {
namespace {

constexpr Peripheral disk{};

template <typename Build>
std::vector<std::byte> built(Build build_into) {
  std::array<std::byte, 512> memory;
  memory.fill(std::byte{0xee});
  ByteWriter out(memory);
  build_into(out);
  EXPECT_TRUE(out.ok());
  return {out.result().begin(), out.result().end()};
}

TEST(Inquiry, StandardDataComesBackAsItWas) {
  StandardInquiry inquiry;
  inquiry.peripheral = {3, 0x1f};
  inquiry.removable = true;
  inquiry.vendor = "VJBOD";
  inquiry.product = "Virtual Disk";
  inquiry.revision = "0.1";
  inquiry.version_descriptors = {0x00a0, 0x0460};
  const auto bytes = built([&](ByteWriter& out) { build(inquiry, out); });
  EXPECT_EQ(bytes.size(), standard_inquiry_bytes);
  EXPECT_EQ(parse_standard_inquiry(bytes).value(), inquiry);
}

TEST(Inquiry, StandardDataOf36BytesIsEnoughAndLessIsNot) {
  StandardInquiry inquiry;
  inquiry.vendor = "V";
  const auto bytes = built([&](ByteWriter& out) { build(inquiry, out); });
  EXPECT_EQ(parse_standard_inquiry(ConstBytes(bytes).first(36))->vendor, "V");
  EXPECT_EQ(parse_standard_inquiry(ConstBytes(bytes).first(35)).error().code, Errc::short_data);
}

TEST(Inquiry, TextOfAPeerComesOutPrintable) {
  auto bytes = built([&](ByteWriter& out) {
    build_unit_serial_number(disk,
                             std::string("  a\x1b[2J\xff"
                                         "b \0",
                                         12),
                             out);
  });
  EXPECT_EQ(parse_unit_serial_number(bytes).value(), "a?[2J?b");
}

TEST(Inquiry, SupportedPagesComeBackAsTheyWere) {
  const std::vector<uint8_t> pages{0x00, 0x80, 0xb0};
  const auto bytes = built([&](ByteWriter& out) { build_supported_pages(disk, pages, out); });
  EXPECT_EQ(parse_supported_pages(bytes).value(), pages);
}

TEST(Inquiry, AnotherPageThanTheOneAskedForIsAnError) {
  const auto bytes = built([&](ByteWriter& out) { build_unit_serial_number(disk, "1", out); });
  EXPECT_EQ(parse_block_limits(bytes).error().code, Errc::bad_data);
  EXPECT_EQ(parse_unit_serial_number(ConstBytes(bytes).first(3)).error().code, Errc::short_data);
}

Designator naa(size_t size, unsigned first, uint8_t association = 0) {
  Designator designator{DesignatorType::naa, association, 1, std::vector<std::byte>(size)};
  designator.bytes[0] = static_cast<std::byte>(first);
  return designator;
}

TEST(Inquiry, DesignatorsComeBackAsTheyWere) {
  const std::vector<Designator> all{naa(8, 0x31), {DesignatorType::scsi_name_string, 1, 3, {}}};
  const auto bytes = built([&](ByteWriter& out) { build_device_identification(disk, all, out); });
  EXPECT_EQ(parse_device_identification(bytes).value(), all);
}

TEST(Inquiry, ACutDesignatorIsLeftOut) {
  const std::vector<Designator> all{naa(8, 0x31), naa(16, 0x61)};
  const auto bytes = built([&](ByteWriter& out) { build_device_identification(disk, all, out); });
  const auto parsed = parse_device_identification(ConstBytes(bytes).first(bytes.size() - 1));
  EXPECT_EQ(parsed.value(), std::vector<Designator>{all[0]});
}

TEST(Inquiry, TheNaaIsTheLongestOneOfTheUnitItself) {
  EXPECT_EQ(naa_of({naa(8, 0x31)}), "naa.3100000000000000");
  EXPECT_EQ(naa_of({naa(8, 0x31), naa(16, 0x61), naa(16, 0x62, 1)}),
            "naa.61000000000000000000000000000000");
  EXPECT_EQ(naa_of({naa(8, 0x31, 1)}), std::nullopt);
  EXPECT_EQ(naa_of({naa(7, 0x31)}), std::nullopt);
}

TEST(Inquiry, BlockLimitsComeBackAsTheyWere) {
  const BlockLimits limits{.write_same_no_zero = true,
                           .optimal_transfer_granularity_blocks = 8,
                           .maximum_transfer_blocks = 65536,
                           .optimal_transfer_blocks = 2048,
                           .maximum_unmap_blocks = 1U << 20,
                           .maximum_unmap_descriptors = 256,
                           .optimal_unmap_granularity_blocks = 8,
                           .unmap_granularity_alignment_blocks = 3,
                           .maximum_write_same_blocks = uint64_t{1} << 33};
  const auto bytes = built([&](ByteWriter& out) { build(disk, limits, out); });
  EXPECT_EQ(bytes.size(), 64U);
  EXPECT_EQ(parse_block_limits(bytes).value(), limits);
}

TEST(Inquiry, AShortOldBlockLimitsPageHasZerosForTheRest) {
  BlockLimits limits{.maximum_transfer_blocks = 77, .maximum_unmap_blocks = 9};
  auto bytes = built([&](ByteWriter& out) { build(disk, limits, out); });
  bytes[3] = std::byte{12};
  limits.maximum_unmap_blocks = 0;
  EXPECT_EQ(parse_block_limits(bytes).value(), limits);
}

TEST(Inquiry, CharacteristicsAndProvisioningComeBackAsTheyWere) {
  const BlockCharacteristics characteristics{7200};
  EXPECT_EQ(parse_block_characteristics(
                built([&](ByteWriter& out) { build(disk, characteristics, out); })),
            characteristics);
  const LogicalBlockProvisioning provisioning{.unmap = true,
                                              .write_same_16_unmap = true,
                                              .write_same_10_unmap = false,
                                              .reads_zeros = true,
                                              .anchor_supported = false,
                                              .type = ProvisioningType::thin};
  EXPECT_EQ(parse_logical_block_provisioning(
                built([&](ByteWriter& out) { build(disk, provisioning, out); })),
            provisioning);
}

TEST(Inquiry, ACacheIdComesBackAsItWas) {
  std::vector<std::byte> bytes(4 + cache_id_bytes);
  ByteWriter out(bytes);
  build_cache_id({}, "3f2b0c3e-0000-4000-8000-0123456789ab", out);
  EXPECT_EQ(parse_cache_id(bytes), "3f2b0c3e-0000-4000-8000-0123456789ab");
}

TEST(Inquiry, TheVendorPageOfAnotherVendorIsNoCacheId) {
  std::vector<std::byte> bytes(4 + cache_id_bytes);
  ByteWriter out(bytes);
  build_cache_id({}, "3f2b0c3e-0000-4000-8000-0123456789ab", out);
  for (const auto& [at, value] : {std::pair{1, 0xc1}, std::pair{3, 35}, std::pair{4, 0x07},
                                  std::pair{39, 0xe4}, std::pair{20, 0x20}}) {
    auto other = bytes;
    other[static_cast<size_t>(at)] = static_cast<std::byte>(value);
    EXPECT_FALSE(parse_cache_id(other)) << at;
  }
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(parse_cache_id(ConstBytes(bytes).first(length))) << length;
  }
}

TEST(Inquiry, NoBytesCrashTheParsers) {
  Random random(3);
  for (int i = 0; i < 5000; ++i) {
    std::array<std::byte, 96> memory;
    random.fill(memory);
    const ConstBytes bytes = ConstBytes(memory).first(random.below(memory.size() + 1));
    for (const unsigned page : {0x00, 0x80, 0x83, 0xb0, 0xb1, 0xb2}) {
      memory[1] = static_cast<std::byte>(page);
      memory[2] = std::byte{0};
      (void)parse_standard_inquiry(bytes);
      (void)parse_supported_pages(bytes);
      (void)parse_unit_serial_number(bytes);
      const auto designators = parse_device_identification(bytes);
      if (designators) (void)naa_of(*designators);
      (void)parse_block_limits(bytes);
      (void)parse_block_characteristics(bytes);
      (void)parse_logical_block_provisioning(bytes);
    }
  }
}

}  // namespace
}  // namespace vjbod::scsi
