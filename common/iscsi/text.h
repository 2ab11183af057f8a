// SPDX-License-Identifier: Apache-2.0
// key=value text (RFC 7143 sections 6.1 and 6.2): splitting, building, and carrying it over several
// PDUs with the C bit. Pure. All input is a peer's: nothing here grows beyond the named limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"

namespace vjbod::iscsi {

inline constexpr size_t key_name_bytes_max = 63;
inline constexpr size_t key_value_bytes_max = 8192;
// One text over all its PDUs: the 64 KiB that RFC 7143 section 6.1 knows as the largest need.
inline constexpr size_t text_bytes_max = 64 * 1024;
// Pairs in one text. All the keys there are come to about fifty.
inline constexpr size_t text_pairs_max = 256;
// The data segment of a PDU in the login phase: the default MaxRecvDataSegmentLength.
inline constexpr size_t login_segment_bytes_max = 8192;

// Views into the text that was split.
struct TextPair {
  std::string_view key;
  std::string_view value;
};

// Splits a whole text. Errors: bad_text (no '=', an empty key or one with other bytes than graphic
// ASCII, a missing final NUL, the same key twice), text_too_long. A value may be any bytes but NUL.
// Keys that may come twice (TargetName and TargetAddress of SendTargets) are for the caller to
// allow.
enum class DuplicateKeys : uint8_t { refused, allowed };
Result<std::vector<TextPair>> split_text(ConstBytes text,
                                         DuplicateKeys duplicates = DuplicateKeys::refused);

// Puts the pieces of a text with the C bit together.
class TextAssembler {
 public:
  explicit TextAssembler(size_t bytes_max = text_bytes_max) : bytes_max_(bytes_max) {}

  Status add(ConstBytes segment);  // text_too_long
  ConstBytes text() const { return as_bytes(std::string_view(text_)); }
  bool empty() const { return text_.empty(); }
  void clear() { text_.clear(); }

 private:
  size_t bytes_max_;
  std::string text_;
};

// Builds a text. The caller gives legal keys and values: ours, not a peer's.
class TextBuilder {
 public:
  TextBuilder& add(std::string_view key, std::string_view value);
  TextBuilder& add(std::string_view key, uint64_t value);
  TextBuilder& add_boolean(std::string_view key, bool value);
  bool empty() const { return text_.empty(); }
  std::string take() { return std::exchange(text_, {}); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Cuts a text into the data segments of several PDUs.
class TextSegmenter {
 public:
  void append(std::string_view text) { rest_ += text; }
  bool empty() const { return rest_.empty(); }
  // Whether next() would leave something for another PDU.
  bool continues(size_t segment_bytes_max) const { return rest_.size() > segment_bytes_max; }
  std::string next(size_t segment_bytes_max);

 private:
  std::string rest_;
};

// "Yes" and "No" (case counts); none for anything else.
std::optional<bool> parse_boolean(std::string_view value);
// A decimal or 0x-prefixed hexadecimal number below 2^64, without sign or leading zeros in decimal.
std::optional<uint64_t> parse_number(std::string_view value);
// Takes the next item off a comma-separated list, until there is none. An empty value is a list of
// one empty item.
std::optional<std::string_view> next_list_item(std::string_view& list);

// A peer's bytes for an error text: graphic ASCII as it is, the rest as \xNN, cut after 64 bytes.
std::string printable(std::string_view bytes);

}  // namespace vjbod::iscsi
