// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/pairing_token.h"

#include <optional>

#include <arpa/inet.h>

#include "common/base/crc32c.h"
#include "common/rpc/errc.h"

namespace vjbod::rpc {

namespace {

constexpr std::string_view prefix = "vjbod1-";
constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";  // RFC 4648 section 5
constexpr uint8_t format_version = 1;
constexpr size_t bytes_max = 1 + 2 + 32 + 16 + 1 + token_addresses_max * (1 + 16) + 4;

std::string encode_base64url(ConstBytes bytes) {
  std::string text;
  uint32_t bits = 0;
  unsigned held = 0;
  for (std::byte b : bytes) {
    bits = bits << 8 | std::to_integer<uint32_t>(b);
    for (held += 8; held >= 6; held -= 6) text += alphabet[bits >> (held - 6) & 63];
  }
  if (held > 0) text += alphabet[bits << (6 - held) & 63];
  return text;
}

// Canonical text only: no padding, no stray bits at the end.
std::optional<std::vector<std::byte>> decode_base64url(std::string_view text) {
  std::vector<std::byte> bytes;
  uint32_t bits = 0;
  unsigned held = 0;
  for (char c : text) {
    size_t value = alphabet.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes.push_back(static_cast<std::byte>(bits >> held));
    }
  }
  if (held >= 6 || (bits & ((1U << held) - 1)) != 0) return std::nullopt;
  return bytes;
}

struct BinaryAddress {
  uint8_t family = 0;  // 4 or 6
  std::array<std::byte, 16> bytes{};
  size_t size() const { return family == 4 ? 4 : 16; }
};

std::optional<BinaryAddress> binary_address(const std::string& text) {
  BinaryAddress result;
  if (text.find('\0') != std::string::npos) return std::nullopt;
  if (inet_pton(AF_INET, text.c_str(), result.bytes.data()) == 1)
    result.family = 4;
  else if (inet_pton(AF_INET6, text.c_str(), result.bytes.data()) == 1)
    result.family = 6;
  else
    return std::nullopt;
  return result;
}

std::string text_of(uint8_t family, ConstBytes bytes) {
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(family == 4 ? AF_INET : AF_INET6, bytes.data(), text, sizeof text);
  return text;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

}  // namespace

Result<std::string> encode_token(const PairingToken& token) {
  if (token.addresses.empty() || token.addresses.size() > token_addresses_max || token.port == 0)
    return fail(Errc::usage, "a token needs a port and 1 to {} addresses", token_addresses_max);
  std::array<std::byte, bytes_max> buffer{};
  ByteWriter writer(buffer);
  writer.u8(format_version).u16(token.port).bytes(token.fingerprint.bytes).bytes(token.secret);
  writer.u8(static_cast<uint8_t>(token.addresses.size()));
  for (const std::string& address : token.addresses) {
    std::optional<BinaryAddress> binary = binary_address(address);
    if (!binary) return fail(Errc::usage, "a token holds numeric addresses only");
    writer.u8(binary->family).bytes(ConstBytes(binary->bytes).first(binary->size()));
  }
  writer.u32(crc32c(writer.result()));
  return std::string(prefix) + encode_base64url(writer.result());
}

Result<PairingToken> decode_token(std::string_view text) {
  auto wrong = [](std::string_view why) {
    return fail(Errc::usage,
                "the token cannot be used: {}; give it exactly as `vjbod target pair-token` on the "
                "other box printed it",
                why);
  };
  text = trimmed(text);
  if (text.size() > token_text_bytes_max) return wrong("it is too long");
  if (text.empty()) return wrong("it is empty");
  if (!text.starts_with(prefix)) return wrong("it does not begin with \"vjbod1-\"");
  std::optional<std::vector<std::byte>> bytes = decode_base64url(text.substr(prefix.size()));
  if (!bytes) return wrong("it holds characters that no token has");
  if (bytes->size() < 4) return wrong("it is incomplete");
  ConstBytes body = ConstBytes(*bytes).first(bytes->size() - 4);
  if (load_big_endian<uint32_t>(bytes->data() + body.size()) != crc32c(body))
    return wrong("it is incomplete or mistyped");

  ByteReader reader(body);
  if (reader.u8() != format_version) return wrong("it is from another version");
  PairingToken token;
  token.port = reader.u16();
  ConstBytes fingerprint = reader.bytes(token.fingerprint.bytes.size());
  ConstBytes secret = reader.bytes(token.secret.size());
  size_t count = reader.u8();
  if (!reader.ok() || token.port == 0 || count == 0 || count > token_addresses_max)
    return wrong("it is malformed");
  std::copy(fingerprint.begin(), fingerprint.end(), token.fingerprint.bytes.begin());
  std::copy(secret.begin(), secret.end(), token.secret.begin());
  for (size_t i = 0; i < count; ++i) {
    uint8_t family = reader.u8();
    if (family != 4 && family != 6) return wrong("it is malformed");
    ConstBytes address = reader.bytes(family == 4 ? 4 : 16);
    if (!reader.ok()) return wrong("it is malformed");
    token.addresses.push_back(text_of(family, address));
  }
  if (reader.remaining() != 0) return wrong("it is malformed");
  return token;
}

}  // namespace vjbod::rpc
