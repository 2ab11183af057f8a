// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/text.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "common/base/check.h"
#include "common/iscsi/errc.h"

namespace vjbod::iscsi {

namespace {

constexpr size_t printable_bytes_max = 64;

bool is_graphic(char c) {
  return c > ' ' && c < '\x7f';
}

Result<TextPair> split_pair(std::string_view pair) {
  const size_t equals = pair.find('=');
  if (equals == std::string_view::npos) {
    return fail(Errc::bad_text, "text \"{}\" has no '='", printable(pair));
  }
  const TextPair split{pair.substr(0, equals), pair.substr(equals + 1)};
  if (split.key.empty()) return fail(Errc::bad_text, "text has a value without a key");
  if (split.key.size() > key_name_bytes_max) {
    return fail(Errc::bad_text, "key \"{}\" has {} bytes, limit {}", printable(split.key),
                split.key.size(), key_name_bytes_max);
  }
  if (!std::all_of(split.key.begin(), split.key.end(), is_graphic)) {
    return fail(Errc::bad_text, "key \"{}\" has illegal characters", printable(split.key));
  }
  if (split.value.size() > key_value_bytes_max) {
    return fail(Errc::text_too_long, "value of key {} has {} bytes, limit {}", split.key,
                split.value.size(), key_value_bytes_max);
  }
  return split;
}

}  // namespace

Result<std::vector<TextPair>> split_text(ConstBytes text, DuplicateKeys duplicates) {
  if (text.size() > text_bytes_max) {
    return fail(Errc::text_too_long, "text has {} bytes, limit {}", text.size(), text_bytes_max);
  }
  std::string_view rest = as_text(text);
  if (!rest.empty() && rest.back() != '\0') {
    return fail(Errc::bad_text, "text does not end with a NUL byte");
  }
  std::vector<TextPair> pairs;
  std::unordered_set<std::string_view> seen;
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(pair.size() + 1);
    if (pair.empty()) continue;  // "at least one" NUL stands between pairs
    if (pairs.size() == text_pairs_max) {
      return fail(Errc::text_too_long, "text has more than {} keys", text_pairs_max);
    }
    Result<TextPair> split = split_pair(pair);
    if (!split) return fail(std::move(split).error());
    if (!seen.insert(split->key).second && duplicates == DuplicateKeys::refused) {
      return fail(Errc::bad_text, "key {} comes twice in one text", split->key);
    }
    pairs.push_back(*split);
  }
  return pairs;
}

Status TextAssembler::add(ConstBytes segment) {
  if (segment.size() > bytes_max_ - text_.size()) {
    return fail(Errc::text_too_long, "text over several PDUs is longer than {} bytes", bytes_max_);
  }
  text_ += as_text(segment);
  return {};
}

TextBuilder& TextBuilder::add(std::string_view key, std::string_view value) {
  VJBOD_CHECK(!key.empty() && key.size() <= key_name_bytes_max);
  VJBOD_CHECK(value.size() <= key_value_bytes_max && value.find('\0') == std::string_view::npos);
  text_.append(key).append(1, '=').append(value).append(1, '\0');
  return *this;
}

TextBuilder& TextBuilder::add(std::string_view key, uint64_t value) {
  return add(key, std::string_view(std::to_string(value)));
}

TextBuilder& TextBuilder::add_boolean(std::string_view key, bool value) {
  return add(key, std::string_view(value ? "Yes" : "No"));
}

std::string TextSegmenter::next(size_t segment_bytes_max) {
  VJBOD_CHECK(segment_bytes_max > 0);
  std::string segment = rest_.substr(0, segment_bytes_max);
  rest_.erase(0, segment.size());
  return segment;
}

std::optional<bool> parse_boolean(std::string_view value) {
  if (value == "Yes") return true;
  if (value == "No") return false;
  return std::nullopt;
}

std::optional<uint64_t> parse_number(std::string_view value) {
  int base = 10;
  if (value.starts_with("0x") || value.starts_with("0X")) {
    base = 16;
    value.remove_prefix(2);
  } else if (value.size() > 1 && value.front() == '0') {
    return std::nullopt;
  }
  uint64_t number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number, base);
  if (value.empty() || error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

std::optional<std::string_view> next_list_item(std::string_view& list) {
  if (list.data() == nullptr) return std::nullopt;
  const size_t comma = list.find(',');
  const std::string_view item = list.substr(0, comma);
  list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  return item;
}

std::string printable(std::string_view bytes) {
  std::string text;
  for (const char c : bytes.substr(0, printable_bytes_max)) {
    if (c == ' ' || (is_graphic(c) && c != '\\')) {
      text += c;
    } else {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (bytes.size() > printable_bytes_max) text += "...";
  return text;
}

}  // namespace vjbod::iscsi
