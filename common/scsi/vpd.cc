// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "common/base/check.h"
#include "common/scsi/inquiry.h"
#include "common/scsi/text_field.h"

namespace vjbod::scsi {

namespace {

void put_header(Peripheral peripheral, VpdPage page, size_t length, ByteWriter& out) {
  VJBOD_CHECK(length <= 0xffff);
  out.u8(static_cast<uint8_t>(peripheral.qualifier << 5 | peripheral.device_type))
      .u8(static_cast<uint8_t>(page))
      .u16(static_cast<uint16_t>(length));
}

// What follows the header: as long as the page says, or as far as it was received.
Result<ConstBytes> page_body(ConstBytes bytes, VpdPage page) {
  if (bytes.size() < 4) {
    return fail(Errc::short_data, "VPD page 0x{:02x} of {} bytes, at least 4 are needed",
                static_cast<unsigned>(page), bytes.size());
  }
  if (std::to_integer<uint8_t>(bytes[1]) != static_cast<uint8_t>(page)) {
    return fail(Errc::bad_data, "asked for VPD page 0x{:02x}, got page 0x{:02x}",
                static_cast<unsigned>(page), std::to_integer<unsigned>(bytes[1]));
  }
  const size_t length = load_big_endian<uint16_t>(&bytes[2]);
  return bytes.subspan(4, std::min(length, bytes.size() - 4));
}

// Pages have grown over time: fields beyond the end of a short page are zero.
template <size_t width>
std::array<std::byte, width> padded(ConstBytes body) {
  std::array<std::byte, width> bytes{};
  std::copy_n(body.begin(), std::min(width, body.size()), bytes.begin());
  return bytes;
}

}  // namespace

void build_supported_pages(Peripheral peripheral, const std::vector<uint8_t>& pages,
                           ByteWriter& out) {
  put_header(peripheral, VpdPage::supported_pages, pages.size(), out);
  for (const uint8_t page : pages) out.u8(page);
}

Result<std::vector<uint8_t>> parse_supported_pages(ConstBytes bytes) {
  const auto body = page_body(bytes, VpdPage::supported_pages);
  if (!body) return fail(body.error());
  std::vector<uint8_t> pages;
  for (const std::byte page : *body) pages.push_back(std::to_integer<uint8_t>(page));
  return pages;
}

void build_unit_serial_number(Peripheral peripheral, const std::string& serial, ByteWriter& out) {
  put_header(peripheral, VpdPage::unit_serial_number, serial.size(), out);
  out.bytes(as_bytes(serial));
}

Result<std::string> parse_unit_serial_number(ConstBytes bytes) {
  const auto body = page_body(bytes, VpdPage::unit_serial_number);
  if (!body) return fail(body.error());
  return take_text(*body);
}

void build_device_identification(Peripheral peripheral, const std::vector<Designator>& designators,
                                 ByteWriter& out) {
  size_t length = 0;
  for (const Designator& designator : designators) {
    VJBOD_CHECK(designator.bytes.size() <= 255);
    length += 4 + designator.bytes.size();
  }
  put_header(peripheral, VpdPage::device_identification, length, out);
  for (const Designator& designator : designators) {
    out.u8(designator.code_set)
        .u8(static_cast<uint8_t>(designator.association << 4 |
                                 static_cast<unsigned>(designator.type)))
        .u8(0)
        .u8(static_cast<uint8_t>(designator.bytes.size()))
        .bytes(designator.bytes);
  }
}

Result<std::vector<Designator>> parse_device_identification(ConstBytes bytes) {
  const auto body = page_body(bytes, VpdPage::device_identification);
  if (!body) return fail(body.error());
  std::vector<Designator> designators;
  ByteReader reader(*body);
  while (reader.remaining() >= 4) {
    Designator designator;
    designator.code_set = reader.u8() & 0xf;
    const unsigned kind = reader.u8();
    designator.type = static_cast<DesignatorType>(kind & 0xf);
    designator.association = static_cast<uint8_t>(kind >> 4 & 3);
    reader.skip(1);
    const ConstBytes value = reader.bytes(reader.u8());
    // The last one may be cut by the allocation length; half an identifier identifies nothing.
    if (!reader.ok()) break;
    designator.bytes.assign(value.begin(), value.end());
    designators.push_back(std::move(designator));
  }
  return designators;
}

std::optional<std::string> naa_of(const std::vector<Designator>& designators) {
  const Designator* best = nullptr;
  for (const Designator& designator : designators) {
    const size_t size = designator.bytes.size();
    if (designator.type != DesignatorType::naa || designator.association != 0) continue;
    if (size != 8 && size != 16) continue;
    if (best == nullptr || size > best->bytes.size()) best = &designator;
  }
  if (best == nullptr) return std::nullopt;
  std::string text = "naa.";
  for (const std::byte byte : best->bytes) {
    text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  }
  return text;
}

void build(Peripheral peripheral, const BlockLimits& limits, ByteWriter& out) {
  put_header(peripheral, VpdPage::block_limits, 0x3c, out);
  out.u8(limits.write_same_no_zero ? 1 : 0)
      .u8(0)  // no COMPARE AND WRITE
      .u16(limits.optimal_transfer_granularity_blocks)
      .u32(limits.maximum_transfer_blocks)
      .u32(limits.optimal_transfer_blocks)
      .u32(0)  // no prefetch
      .u32(limits.maximum_unmap_blocks)
      .u32(limits.maximum_unmap_descriptors)
      .u32(limits.optimal_unmap_granularity_blocks)
      .u32(limits.unmap_granularity_alignment_blocks
               ? 0x80000000U | (*limits.unmap_granularity_alignment_blocks & 0x7fffffffU)
               : 0)
      .u64(limits.maximum_write_same_blocks)
      .zeros(20);  // no atomic writes
}

Result<BlockLimits> parse_block_limits(ConstBytes bytes) {
  const auto body = page_body(bytes, VpdPage::block_limits);
  if (!body) return fail(body.error());
  const auto page = padded<0x3c>(*body);
  ByteReader reader(page);
  BlockLimits limits;
  limits.write_same_no_zero = (reader.u8() & 1) != 0;
  reader.skip(1);
  limits.optimal_transfer_granularity_blocks = reader.u16();
  limits.maximum_transfer_blocks = reader.u32();
  limits.optimal_transfer_blocks = reader.u32();
  reader.skip(4);
  limits.maximum_unmap_blocks = reader.u32();
  limits.maximum_unmap_descriptors = reader.u32();
  limits.optimal_unmap_granularity_blocks = reader.u32();
  const uint32_t alignment = reader.u32();
  if ((alignment & 0x80000000U) != 0) {
    limits.unmap_granularity_alignment_blocks = alignment & 0x7fffffffU;
  }
  limits.maximum_write_same_blocks = reader.u64();
  return limits;
}

void build(Peripheral peripheral, const BlockCharacteristics& characteristics, ByteWriter& out) {
  put_header(peripheral, VpdPage::block_characteristics, 0x3c, out);
  out.u16(characteristics.medium_rotation_rate).zeros(0x3c - 2);
}

Result<BlockCharacteristics> parse_block_characteristics(ConstBytes bytes) {
  const auto body = page_body(bytes, VpdPage::block_characteristics);
  if (!body) return fail(body.error());
  const auto page = padded<2>(*body);
  return BlockCharacteristics{load_big_endian<uint16_t>(page.data())};
}

void build(Peripheral peripheral, const LogicalBlockProvisioning& provisioning, ByteWriter& out) {
  put_header(peripheral, VpdPage::logical_block_provisioning, 4, out);
  const unsigned flags =
      (provisioning.unmap ? 0x80U : 0) | (provisioning.write_same_16_unmap ? 0x40U : 0) |
      (provisioning.write_same_10_unmap ? 0x20U : 0) | (provisioning.reads_zeros ? 0x04U : 0) |
      (provisioning.anchor_supported ? 0x02U : 0);
  out.u8(0)  // no threshold
      .u8(static_cast<uint8_t>(flags))
      .u8(static_cast<uint8_t>(provisioning.type))
      .u8(0);
}

Result<LogicalBlockProvisioning> parse_logical_block_provisioning(ConstBytes bytes) {
  const auto body = page_body(bytes, VpdPage::logical_block_provisioning);
  if (!body) return fail(body.error());
  const auto page = padded<4>(*body);
  const auto flags = std::to_integer<unsigned>(page[1]);
  const auto type = std::to_integer<unsigned>(page[2]) & 7;
  LogicalBlockProvisioning provisioning;
  provisioning.unmap = (flags & 0x80) != 0;
  provisioning.write_same_16_unmap = (flags & 0x40) != 0;
  provisioning.write_same_10_unmap = (flags & 0x20) != 0;
  // Three bits since SBC-4; only 001b says that every unmapped block reads as zeros.
  provisioning.reads_zeros = (flags >> 2 & 7) == 1;
  provisioning.anchor_supported = (flags & 0x02) != 0;
  provisioning.type =
      type <= 2 ? static_cast<ProvisioningType>(type) : ProvisioningType::not_reported;
  return provisioning;
}

}  // namespace vjbod::scsi
