// SPDX-License-Identifier: Apache-2.0
#include "common/scsi/sense.h"

#include <limits>

#include "common/base/check.h"

namespace vjbod::scsi {

namespace {

constexpr unsigned current_fixed = 0x70;
constexpr unsigned deferred_fixed = 0x71;
constexpr unsigned current_descriptor = 0x72;
constexpr unsigned deferred_descriptor = 0x73;
constexpr unsigned information_descriptor = 0x00;         // SPC-4 4.5.2.2
constexpr unsigned sense_key_specific_descriptor = 0x02;  // SPC-4 4.5.2.4

void store_field_pointer(const FieldPointer& field, std::byte* to) {
  unsigned first = 0x80;
  if (field.in_cdb) first |= 0x40;
  if (field.bit) first |= 0x08U | (*field.bit & 7U);
  to[0] = static_cast<std::byte>(first);
  store_big_endian(to + 1, field.byte);
}

std::optional<FieldPointer> load_field_pointer(SenseKey key, const std::byte* from) {
  const auto first = std::to_integer<unsigned>(from[0]);
  if (key != SenseKey::illegal_request || (first & 0x80) == 0) return std::nullopt;
  FieldPointer field;
  field.in_cdb = (first & 0x40) != 0;
  if ((first & 0x08) != 0) field.bit = static_cast<uint8_t>(first & 7);
  field.byte = load_big_endian<uint16_t>(from + 1);
  return field;
}

Sense parse_fixed(ConstBytes bytes) {
  Sense sense;
  const auto first = std::to_integer<unsigned>(bytes[0]);
  sense.deferred = (first & 0x7f) == deferred_fixed;
  sense.key = static_cast<SenseKey>(std::to_integer<unsigned>(bytes[2]) & 0xf);
  // The bytes behind this one only count as far as it says (SPC-4 4.5.3).
  const size_t length = std::min<size_t>(bytes.size(), 8 + std::to_integer<size_t>(bytes[7]));
  if ((first & 0x80) != 0) sense.information = load_big_endian<uint32_t>(&bytes[3]);
  if (length >= 13) sense.additional.code = std::to_integer<uint8_t>(bytes[12]);
  if (length >= 14) sense.additional.qualifier = std::to_integer<uint8_t>(bytes[13]);
  if (length >= 18) sense.field = load_field_pointer(sense.key, &bytes[15]);
  return sense;
}

Sense parse_descriptors(ConstBytes bytes) {
  Sense sense;
  sense.deferred = (std::to_integer<unsigned>(bytes[0]) & 0x7f) == deferred_descriptor;
  sense.key = static_cast<SenseKey>(std::to_integer<unsigned>(bytes[1]) & 0xf);
  sense.additional = {std::to_integer<uint8_t>(bytes[2]), std::to_integer<uint8_t>(bytes[3])};
  ConstBytes rest = bytes.subspan(8);
  rest = rest.first(std::min<size_t>(rest.size(), std::to_integer<size_t>(bytes[7])));
  while (rest.size() >= 2) {
    const size_t length = 2 + std::to_integer<size_t>(rest[1]);
    if (length > rest.size()) break;
    const auto type = std::to_integer<unsigned>(rest[0]);
    if (type == information_descriptor && length >= 12 &&
        (std::to_integer<unsigned>(rest[2]) & 0x80) != 0) {
      sense.information = load_big_endian<uint64_t>(&rest[4]);
    } else if (type == sense_key_specific_descriptor && length >= 8) {
      sense.field = load_field_pointer(sense.key, &rest[4]);
    }
    rest = rest.subspan(length);
  }
  return sense;
}

}  // namespace

const char* name_of(SenseKey key) {
  switch (key) {
    case SenseKey::no_sense: return "NO SENSE";
    case SenseKey::recovered_error: return "RECOVERED ERROR";
    case SenseKey::not_ready: return "NOT READY";
    case SenseKey::medium_error: return "MEDIUM ERROR";
    case SenseKey::hardware_error: return "HARDWARE ERROR";
    case SenseKey::illegal_request: return "ILLEGAL REQUEST";
    case SenseKey::unit_attention: return "UNIT ATTENTION";
    case SenseKey::data_protect: return "DATA PROTECT";
    case SenseKey::blank_check: return "BLANK CHECK";
    case SenseKey::vendor_specific: return "VENDOR SPECIFIC";
    case SenseKey::copy_aborted: return "COPY ABORTED";
    case SenseKey::aborted_command: return "ABORTED COMMAND";
    case SenseKey::volume_overflow: return "VOLUME OVERFLOW";
    case SenseKey::miscompare: return "MISCOMPARE";
    case SenseKey::completed: return "COMPLETED";
  }
  return "unknown sense key";
}

size_t build_fixed_sense(const Sense& sense, Bytes out) {
  VJBOD_CHECK(out.size() >= fixed_sense_bytes);
  std::fill_n(out.begin(), fixed_sense_bytes, std::byte{0});
  unsigned first = sense.deferred ? deferred_fixed : current_fixed;
  if (sense.information && *sense.information <= std::numeric_limits<uint32_t>::max()) {
    first |= 0x80;
    store_big_endian(&out[3], static_cast<uint32_t>(*sense.information));
  }
  out[0] = static_cast<std::byte>(first);
  out[2] = static_cast<std::byte>(sense.key);
  out[7] = static_cast<std::byte>(fixed_sense_bytes - 8);
  out[12] = static_cast<std::byte>(sense.additional.code);
  out[13] = static_cast<std::byte>(sense.additional.qualifier);
  if (sense.field) store_field_pointer(*sense.field, &out[15]);
  return fixed_sense_bytes;
}

size_t build_descriptor_sense(const Sense& sense, Bytes out) {
  VJBOD_CHECK(out.size() >= descriptor_sense_bytes_max);
  std::fill_n(out.begin(), descriptor_sense_bytes_max, std::byte{0});
  out[0] = static_cast<std::byte>(sense.deferred ? deferred_descriptor : current_descriptor);
  out[1] = static_cast<std::byte>(sense.key);
  out[2] = static_cast<std::byte>(sense.additional.code);
  out[3] = static_cast<std::byte>(sense.additional.qualifier);
  size_t used = 8;
  if (sense.information) {
    out[used] = static_cast<std::byte>(information_descriptor);
    out[used + 1] = std::byte{10};
    out[used + 2] = std::byte{0x80};  // VALID
    store_big_endian(&out[used + 4], *sense.information);
    used += 12;
  }
  if (sense.field) {
    out[used] = static_cast<std::byte>(sense_key_specific_descriptor);
    out[used + 1] = std::byte{6};
    store_field_pointer(*sense.field, &out[used + 4]);
    used += 8;
  }
  out[7] = static_cast<std::byte>(used - 8);
  return used;
}

Result<Sense> parse_sense(ConstBytes bytes) {
  if (bytes.size() < 8) {
    return fail(Errc::short_data, "sense data of {} bytes, at least 8 are needed", bytes.size());
  }
  const unsigned format = std::to_integer<unsigned>(bytes[0]) & 0x7f;
  switch (format) {
    case current_fixed:
    case deferred_fixed: return parse_fixed(bytes);
    case current_descriptor:
    case deferred_descriptor: return parse_descriptors(bytes);
    default: return fail(Errc::bad_data, "sense data of the unknown format 0x{:02x}", format);
  }
}

std::string describe(const Sense& sense) {
  return fmt::format("{}, {} ({:02x}/{:02x}/{:02x})", name_of(sense.key), name_of(sense.additional),
                     static_cast<unsigned>(sense.key), sense.additional.code,
                     sense.additional.qualifier);
}

}  // namespace vjbod::scsi
