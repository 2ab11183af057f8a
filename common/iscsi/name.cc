// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/name.h"

#include <algorithm>

#include "common/iscsi/errc.h"
#include "common/iscsi/text.h"

namespace vjbod::iscsi {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f');
}
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
bool all_of(std::string_view text, bool (*is)(char)) {
  return std::all_of(text.begin(), text.end(), is);
}

// What is wrong with a name in lower case whose characters are all allowed; empty if nothing.
std::string_view wrong_with_iqn(std::string_view rest) {
  // iqn.yyyy-mm.naming-authority[:anything]
  constexpr size_t date_length = 7;
  const std::string_view date = rest.substr(0, date_length);
  if (date.size() < date_length || !all_of(date.substr(0, 4), is_digit) || date[4] != '-' ||
      !all_of(date.substr(5), is_digit)) {
    return "\"iqn.\" is followed by a year and a month, as in 2004-10";
  }
  const int month = (date[5] - '0') * 10 + (date[6] - '0');
  if (month < 1 || month > 12) return "there is no such month";
  const std::string_view after = rest.substr(date_length);
  const std::string_view authority = after.substr(0, after.find(':'));
  if (authority.size() < 2 || authority[0] != '.') {
    return "the date is followed by a dot and a reversed domain name, as in .com.example";
  }
  if (authority.back() == '.') return "the domain name ends with a dot";
  if (authority.size() != after.size() && authority.size() + 1 == after.size()) {
    return "nothing follows the colon";
  }
  return {};
}

std::string_view wrong_with(std::string_view name) {
  const std::string_view rest = name.substr(std::min<size_t>(name.size(), 4));
  if (name.starts_with("iqn.")) return wrong_with_iqn(rest);
  if (name.starts_with("eui.")) {
    return rest.size() == 16 && all_of(rest, is_hex_digit)
               ? std::string_view()
               : "\"eui.\" is followed by 16 hexadecimal digits";
  }
  if (name.starts_with("naa.")) {
    return (rest.size() == 16 || rest.size() == 32) && all_of(rest, is_hex_digit)
               ? std::string_view()
               : "\"naa.\" is followed by 16 or 32 hexadecimal digits";
  }
  return "a name begins with \"iqn.\", \"eui.\" or \"naa.\"";
}

}  // namespace

Result<std::string> normalised_name(std::string_view name) {
  if (name.empty()) return fail(Errc::bad_name, "an iSCSI name is empty");
  if (name.size() > name_bytes_max) {
    return fail(Errc::bad_name, "\"{}\" is not an iSCSI name: it has {} bytes, {} are allowed",
                printable(name), name.size(), name_bytes_max);
  }
  std::string lowered(name);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(), lower);
  for (size_t i = 0; i < lowered.size(); ++i) {
    const char c = lowered[i];
    if (is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == ':') continue;
    return fail(Errc::bad_name,
                "\"{}\" is not an iSCSI name: byte {} is 0x{:02x}; letters, digits, '-', '.' and "
                "':' are allowed",
                printable(name), i + 1, static_cast<unsigned char>(c));
  }
  if (lowered.find("..") != std::string::npos) {
    return fail(Errc::bad_name, "\"{}\" is not an iSCSI name: two dots in a row", printable(name));
  }
  if (const std::string_view reason = wrong_with(lowered); !reason.empty()) {
    return fail(Errc::bad_name, "\"{}\" is not an iSCSI name: {}", printable(name), reason);
  }
  return lowered;
}

}  // namespace vjbod::iscsi
