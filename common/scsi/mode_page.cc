// SPDX-License-Identifier: Apache-2.0
#include "common/scsi/mode_page.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"

namespace vjbod::scsi {

namespace {

constexpr size_t caching_page_bytes = 20;
constexpr size_t control_page_bytes = 12;
constexpr size_t block_descriptor_bytes = 8;

void build(const CachingPage& page, bool changeable, ByteWriter& out) {
  const unsigned flags =
      (page.write_cache_enabled ? 0x04U : 0) | (page.read_cache_disabled ? 1U : 0);
  out.u8(mode_page_caching)
      .u8(caching_page_bytes - 2)
      .u8(changeable ? 0 : static_cast<uint8_t>(flags))
      .zeros(caching_page_bytes - 3);
}

void build(const ControlPage& page, bool changeable, ByteWriter& out) {
  out.u8(mode_page_control).u8(control_page_bytes - 2);
  if (changeable) {
    out.zeros(control_page_bytes - 2);
    return;
  }
  out.u8(static_cast<uint8_t>((page.task_set_per_nexus ? 0x20U : 0) |
                              (page.descriptor_sense ? 0x04U : 0)))
      .u8(page.unrestricted_reordering ? 0x10 : 0)
      .u8(page.software_write_protect ? 0x08 : 0)
      .u8(page.task_aborted_status ? 0x40 : 0)
      .zeros(6);
}

CachingPage parse_caching(ConstBytes page) {
  const auto flags = std::to_integer<unsigned>(page[2]);
  return {.write_cache_enabled = (flags & 0x04) != 0, .read_cache_disabled = (flags & 1) != 0};
}

ControlPage parse_control(ConstBytes page) {
  const auto byte = [&](size_t i) { return std::to_integer<unsigned>(page[i]); };
  return {.task_set_per_nexus = byte(2) >> 5 == 1,
          .descriptor_sense = (byte(2) & 0x04) != 0,
          .unrestricted_reordering = byte(3) >> 4 == 1,
          .software_write_protect = (byte(4) & 0x08) != 0,
          .task_aborted_status = (byte(5) & 0x40) != 0};
}

void parse_pages(ConstBytes rest, ModeData& data) {
  while (rest.size() >= 4) {
    const auto first = std::to_integer<unsigned>(rest[0]);
    const bool has_subpage = (first & 0x40) != 0;
    const size_t length = has_subpage ? size_t{4} + load_big_endian<uint16_t>(&rest[2])
                                      : 2 + std::to_integer<size_t>(rest[1]);
    if (length > rest.size()) return;
    if (!has_subpage && (first & 0x3f) == mode_page_caching && length >= 3) {
      data.caching = parse_caching(rest);
    } else if (!has_subpage && (first & 0x3f) == mode_page_control && length >= 6) {
      data.control = parse_control(rest);
    }
    rest = rest.subspan(length);
  }
}

}  // namespace

void build_mode_data(const ModeData& data, CdbSize size, bool changeable, ByteWriter& out) {
  const size_t descriptor = data.block ? block_descriptor_bytes : 0;
  const size_t behind = descriptor + (data.caching ? caching_page_bytes : 0) +
                        (data.control ? control_page_bytes : 0);
  const auto device_specific =
      static_cast<uint8_t>((data.write_protected ? 0x80U : 0) | (data.dpo_and_fua ? 0x10U : 0));
  if (size == CdbSize::ten) {
    // The MODE DATA LENGTH does not count itself.
    out.u16(static_cast<uint16_t>(6 + behind)).u8(0).u8(device_specific).zeros(2);
    out.u16(static_cast<uint16_t>(descriptor));
  } else {
    out.u8(static_cast<uint8_t>(3 + behind)).u8(0).u8(device_specific);
    out.u8(static_cast<uint8_t>(descriptor));
  }
  if (data.block) {
    const uint64_t most = std::numeric_limits<uint32_t>::max();
    out.u32(static_cast<uint32_t>(std::min(data.block->blocks, most)))
        .u8(0)
        .u24(data.block->block_bytes);
  }
  if (data.caching) build(*data.caching, changeable, out);
  if (data.control) build(*data.control, changeable, out);
}

Result<ModeData> parse_mode_data(ConstBytes bytes, CdbSize size) {
  const bool ten = size == CdbSize::ten;
  const size_t header = ten ? 8 : 4;
  if (bytes.size() < header) {
    return fail(Errc::short_data, "MODE SENSE data of {} bytes, at least {} are needed",
                bytes.size(), header);
  }
  const size_t length = ten ? size_t{2} + load_big_endian<uint16_t>(&bytes[0])
                            : 1 + std::to_integer<size_t>(bytes[0]);
  const auto device_specific = std::to_integer<unsigned>(bytes[ten ? 3 : 2]);
  const size_t descriptors =
      ten ? load_big_endian<uint16_t>(&bytes[6]) : std::to_integer<size_t>(bytes[3]);
  const bool long_descriptor = ten && (std::to_integer<unsigned>(bytes[4]) & 1) != 0;
  ModeData data;
  data.write_protected = (device_specific & 0x80) != 0;
  data.dpo_and_fua = (device_specific & 0x10) != 0;
  const ConstBytes valid = bytes.first(std::min(bytes.size(), length));
  if (valid.size() < header || descriptors > valid.size() - header) return data;
  const ConstBytes block = valid.subspan(header, descriptors);
  if (long_descriptor && block.size() >= 16) {
    data.block = {load_big_endian<uint64_t>(&block[0]), load_big_endian<uint32_t>(&block[12])};
  } else if (!long_descriptor && block.size() >= block_descriptor_bytes) {
    data.block = {load_big_endian<uint32_t>(&block[0]), load_big_endian<uint32_t>(&block[5], 3)};
  }
  parse_pages(valid.subspan(header + descriptors), data);
  return data;
}

}  // namespace vjbod::scsi
