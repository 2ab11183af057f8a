// SPDX-License-Identifier: Apache-2.0
#include "common/config/values.h"

#include <charconv>
#include <limits>
#include <optional>

#include <arpa/inet.h>

#include "common/config/config_reader.h"

namespace vjbod::config {

namespace {

constexpr uint64_t lun_size_max_bytes = uint64_t{1} << 62;

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

// Digits only, no sign, no blank; nothing on overflow.
std::optional<uint64_t> parse_digits(std::string_view text) {
  uint64_t value = 0;
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_host(std::string_view text) {
  if (is_numeric_address(text)) return true;
  // A link-local address with its zone, "fe80::1%eth0".
  if (size_t percent = text.find('%'); percent != std::string_view::npos) {
    std::string_view zone = text.substr(percent + 1);
    if (zone.empty() || zone.size() > 15) return false;
    for (char c : zone)
      if (c <= ' ' || c > '~' || c == '/' || c == '%') return false;
    return text.find(':') != std::string_view::npos && is_numeric_address(text.substr(0, percent));
  }
  if (text.empty() || text.size() > 253 || text.front() == '-' || text.front() == '.') return false;
  for (char c : text) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter && c != '.' && c != '-' && c != '_') return false;
  }
  return true;
}

// Length of the UTF-8 sequence at the front, 0 when it is not one.
size_t utf8_length(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  size_t length = first < 0x80 ? 1 : first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first >= 0x80 && (first < 0xc2 || first >= 0xf5)) return 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if (length == 3 && first == 0xe0 && byte(1) < 0xa0) return 0;   // overlong
  if (length == 3 && first == 0xed && byte(1) >= 0xa0) return 0;  // surrogates
  if (length == 4 && first == 0xf0 && byte(1) < 0x90) return 0;   // overlong
  if (length == 4 && first == 0xf4 && byte(1) >= 0x90) return 0;  // beyond Unicode
  return length;
}

// Characters that show nothing or turn the text around them: soft hyphen, zero width characters,
// line and paragraph separators, marks and overrides of the writing direction, byte order mark.
bool is_invisible(std::string_view sequence) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(sequence[i]); };
  if (sequence.size() == 2)  // U+00A0, U+00AD, U+061C
    return sequence == "\xc2\xa0" || sequence == "\xc2\xad" || sequence == "\xd8\x9c";
  if (sequence.size() != 3) return false;
  if (sequence == "\xef\xbb\xbf") return true;  // U+FEFF
  if (byte(0) != 0xe2) return false;
  return (byte(1) == 0x80 && ((byte(2) >= 0x8b && byte(2) <= 0x8f) ||    // U+200B to U+200F
                              (byte(2) >= 0xa8 && byte(2) <= 0xae))) ||  // U+2028 to U+202E
         (byte(1) == 0x81 && byte(2) >= 0xa0 && byte(2) <= 0xaf);        // U+2060 to U+206F
}

}  // namespace

bool is_name(std::string_view text) {
  if (text.empty() || text.size() > name_bytes_max || !is_name_letter(text.front())) return false;
  for (char c : text)
    if (!is_name_letter(c) && c != '-') return false;
  return true;
}

Status check_name(std::string_view what, std::string_view text) {
  if (is_name(text)) return {};
  return fail(ConfigErrc::bad_value,
              "{} \"{}\" is not allowed: use 1 to {} of the characters a-z, 0-9 and -, beginning "
              "with a letter or a digit",
              what, printable(text, name_bytes_max), name_bytes_max);
}

Status check_interface_name(std::string_view what, std::string_view text) {
  constexpr size_t bytes_max = 15;  // IFNAMSIZ - 1
  bool valid = !text.empty() && text.size() <= bytes_max && text != "." && text != "..";
  for (char c : text) valid &= c > ' ' && c < 0x7f && c != '/' && c != ':';
  if (valid) return {};
  return fail(ConfigErrc::bad_value,
              "{} \"{}\" is not allowed: the name of an interface has 1 to {} visible ASCII "
              "characters, without / and :",
              what, printable(text, bytes_max), bytes_max);
}

Result<uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view units = "KMGTP";
  std::string_view digits = text;
  unsigned shift = 0;
  if (!digits.empty()) {
    char last = digits.back();
    if (last >= 'a' && last <= 'z') last = static_cast<char>(last - 'a' + 'A');
    if (size_t unit = units.find(last); unit != std::string_view::npos) {
      shift = 10 * (static_cast<unsigned>(unit) + 1);
      digits.remove_suffix(1);
    }
  }
  std::optional<uint64_t> value = parse_digits(digits);
  if (!value || *value > std::numeric_limits<uint64_t>::max() >> shift)
    return fail(ConfigErrc::bad_value,
                "\"{}\" is not a size: give bytes, or a number with K, M, G, T or P (powers of "
                "1024)",
                printable(text, 40));
  return *value << shift;
}

std::string size_text(uint64_t bytes) {
  constexpr std::string_view units = "KMGTP";
  size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  std::string text = std::to_string(bytes);
  if (unit > 0) text += units[unit - 1];
  return text;
}

Status check_lun_size(uint64_t size_bytes, uint32_t block_size) {
  if (block_size != 512 && block_size != 4096)
    return fail(ConfigErrc::bad_value, "block size {} is not allowed: use 512 or 4096", block_size);
  if (size_bytes == 0) return fail(ConfigErrc::bad_value, "a size of 0 is not allowed");
  if (size_bytes % block_size != 0)
    return fail(ConfigErrc::bad_value,
                "size {} is not a multiple of the block size {}: the nearest smaller one is {}",
                size_bytes, block_size, size_bytes - size_bytes % block_size);
  if (size_bytes > lun_size_max_bytes)
    return fail(ConfigErrc::bad_value, "size {} is more than the {} bytes that are possible",
                size_bytes, lun_size_max_bytes);
  return {};
}

Result<Duration> parse_duration(std::string_view text) {
  struct Unit {
    std::string_view suffix;
    Duration length;
  };
  constexpr Unit units[] = {{"ms", std::chrono::milliseconds(1)}, {"s", std::chrono::seconds(1)},
                            {"m", std::chrono::minutes(1)},       {"h", std::chrono::hours(1)},
                            {"d", std::chrono::hours(24)},        {"", std::chrono::seconds(1)}};
  constexpr Duration limit = std::chrono::hours(24 * 3650);
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.suffix)) continue;
    std::optional<uint64_t> count = parse_digits(text.substr(0, text.size() - unit.suffix.size()));
    if (!count || *count > static_cast<uint64_t>(limit / unit.length)) break;
    return unit.length * static_cast<int64_t>(*count);
  }
  return fail(ConfigErrc::bad_value,
              "\"{}\" is not a duration: give seconds, or a number with ms, s, m, h or d",
              printable(text, 40));
}

bool is_numeric_address(std::string_view text) {
  if (text.size() > INET6_ADDRSTRLEN || text.find('\0') != std::string_view::npos) return false;
  std::string copy(text);
  in6_addr parsed{};
  return inet_pton(AF_INET, copy.c_str(), &parsed) == 1 ||
         inet_pton(AF_INET6, copy.c_str(), &parsed) == 1;
}

Result<HostPort> parse_host_port(std::string_view text, uint16_t default_port) {
  auto wrong = [&](std::string_view why) {
    return fail(ConfigErrc::bad_value, "\"{}\" is not an address: {}", printable(text, 300), why);
  };
  std::string_view host = text, port;
  bool has_port = false;
  if (text.starts_with('[')) {
    size_t end = text.find(']');
    if (end == std::string_view::npos) return wrong("\"]\" is missing");
    host = text.substr(1, end - 1);
    if (host.find(':') == std::string_view::npos) return wrong("brackets are for IPv6 addresses");
    std::string_view rest = text.substr(end + 1);
    if (!rest.empty()) {
      if (rest.front() != ':') return wrong("after \"]\" only \":PORT\" may follow");
      has_port = true;
      port = rest.substr(1);
    }
  } else if (size_t colon = text.find(':'); colon != std::string_view::npos &&
                                            text.find(':', colon + 1) == std::string_view::npos) {
    has_port = true;
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  if (!is_host(host)) return wrong("use an IPv4 or IPv6 address or a host name");
  HostPort result{std::string(host), default_port};
  if (has_port) {
    std::optional<uint64_t> number = parse_digits(port);
    if (!number || *number > 65535) return wrong("the port must be a number up to 65535");
    result.port = static_cast<uint16_t>(*number);
  }
  return result;
}

std::string host_port_text(std::string_view host, uint16_t port) {
  return host.find(':') != std::string_view::npos ? fmt::format("[{}]:{}", host, port)
                                                  : fmt::format("{}:{}", host, port);
}

std::string printable(std::string_view text, size_t bytes_max) {
  std::string result;
  while (!text.empty()) {
    size_t length = utf8_length(text);
    bool control =
        length == 0 || static_cast<unsigned char>(text[0]) < 0x20 || text[0] == 0x7f ||
        (length == 2 && text[0] == '\xc2' && static_cast<unsigned char>(text[1]) < 0xa0) ||
        is_invisible(text.substr(0, length));
    if (result.size() + (control ? 1 : length) > bytes_max) return result + "...";
    if (control)
      result += '?';
    else
      result += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

}  // namespace vjbod::config
