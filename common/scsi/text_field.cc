// SPDX-License-Identifier: Apache-2.0
#include "common/scsi/text_field.h"

namespace vjbod::scsi {

void put_text(std::string_view text, size_t width, ByteWriter& out) {
  text = text.substr(0, width);
  out.bytes(as_bytes(text));
  for (size_t i = text.size(); i < width; ++i) out.u8(' ');
}

std::string take_text(ConstBytes field) {
  std::string text(as_text(field));
  const size_t first = text.find_first_not_of(std::string_view(" \0", 2));
  if (first == std::string::npos) return {};
  const size_t last = text.find_last_not_of(std::string_view(" \0", 2));
  text = text.substr(first, last - first + 1);
  for (char& c : text) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return text;
}

}  // namespace vjbod::scsi
