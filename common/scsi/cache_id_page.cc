// SPDX-License-Identifier: Apache-2.0
#include "common/scsi/cache_id_page.h"

#include <algorithm>

#include "common/base/check.h"

namespace vjbod::scsi {

namespace {

constexpr size_t header_bytes = 4;

bool is_graphic(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

void build_cache_id(Peripheral peripheral, const std::string& id, ByteWriter& out) {
  VJBOD_CHECK(id.size() == cache_id_bytes && is_graphic(id), "\"{}\" is no cache id", id);
  out.u8(static_cast<uint8_t>(peripheral.qualifier << 5 | peripheral.device_type));
  out.u8(vpd_page_cache_id);
  out.u16(cache_id_bytes);
  out.bytes(as_bytes(std::string_view(id)));
}

std::optional<std::string> parse_cache_id(ConstBytes bytes) {
  if (bytes.size() < header_bytes + cache_id_bytes ||
      std::to_integer<uint8_t>(bytes[1]) != vpd_page_cache_id ||
      load_big_endian<uint16_t>(&bytes[2]) != cache_id_bytes) {
    return std::nullopt;
  }
  const std::string_view id = as_text(bytes.subspan(header_bytes, cache_id_bytes));
  if (!is_graphic(id)) return std::nullopt;
  return std::string(id);
}

}  // namespace vjbod::scsi
