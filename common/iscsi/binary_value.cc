// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/binary_value.h"

#include <cstdint>
#include <optional>

#include "common/iscsi/errc.h"

namespace vjbod::iscsi {

namespace {

constexpr std::string_view hex_digits = "0123456789abcdef";
constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::optional<uint32_t> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::optional<uint32_t> base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return std::nullopt;
}

tl::unexpected<Error> too_long(size_t bytes, size_t bytes_max) {
  return fail(Errc::bad_value, "binary value has {} bytes, limit {}", bytes, bytes_max);
}

Result<std::vector<std::byte>> decode_hex(std::string_view digits, size_t bytes_max) {
  if (digits.empty() || digits.size() % 2 != 0) {
    return fail(Errc::bad_value, "hexadecimal value has {} digits", digits.size());
  }
  if (digits.size() / 2 > bytes_max) return too_long(digits.size() / 2, bytes_max);
  std::vector<std::byte> bytes(digits.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto high = hex_digit(digits[2 * i]);
    const auto low = hex_digit(digits[2 * i + 1]);
    if (!high || !low) return fail(Errc::bad_value, "hexadecimal value has another character");
    bytes[i] = static_cast<std::byte>(*high << 4 | *low);
  }
  return bytes;
}

Result<std::vector<std::byte>> decode_base64(std::string_view digits, size_t bytes_max) {
  if (digits.empty() || digits.size() % 4 != 0) {
    return fail(Errc::bad_value, "base64 value has {} characters, not a multiple of 4",
                digits.size());
  }
  size_t padding = 0;
  while (padding < 2 && digits[digits.size() - 1 - padding] == '=') ++padding;
  const size_t size = digits.size() / 4 * 3 - padding;
  if (size > bytes_max) return too_long(size, bytes_max);
  std::vector<std::byte> bytes;
  bytes.reserve(size);
  uint32_t bits = 0;
  uint32_t bit_count = 0;
  for (const char c : digits.substr(0, digits.size() - padding)) {
    const auto digit = base64_digit(c);
    if (!digit) return fail(Errc::bad_value, "base64 value has another character");
    bits = bits << 6 | *digit;
    bit_count += 6;
    if (bit_count >= 8) {
      bit_count -= 8;
      bytes.push_back(static_cast<std::byte>(bits >> bit_count));
      bits &= (1U << bit_count) - 1;
    }
  }
  if (bits != 0) return fail(Errc::bad_value, "base64 value has left-over bits");
  return bytes;
}

}  // namespace

Result<std::vector<std::byte>> decode_binary_value(std::string_view value, size_t bytes_max) {
  if (value.starts_with("0x") || value.starts_with("0X")) {
    return decode_hex(value.substr(2), bytes_max);
  }
  if (value.starts_with("0b") || value.starts_with("0B")) {
    return decode_base64(value.substr(2), bytes_max);
  }
  return fail(Errc::bad_value, "binary value begins with neither 0x nor 0b");
}

std::string encode_hex(ConstBytes bytes) {
  std::string text = "0x";
  text.reserve(2 + 2 * bytes.size());
  for (const std::byte b : bytes) {
    text += hex_digits[std::to_integer<size_t>(b) >> 4];
    text += hex_digits[std::to_integer<size_t>(b) & 0xf];
  }
  return text;
}

std::string encode_base64(ConstBytes bytes) {
  std::string text = "0b";
  text.reserve(2 + (bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (j < count ? std::to_integer<uint32_t>(bytes[i + j]) : 0);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += j <= count ? base64_digits[bits >> (18 - 6 * j) & 0x3f] : '=';
    }
  }
  return text;
}

}  // namespace vjbod::iscsi
