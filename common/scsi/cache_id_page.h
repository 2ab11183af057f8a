// SPDX-License-Identifier: Apache-2.0
// Vendor page C0 of our own target (SPC-4 7.8.1: C0 to FF are a vendor's): which cache holds the
// writes that were acknowledged and not flushed. 36 characters of ASCII. When an initiator reads
// another id than before, the old cache is gone, and what was in it may be lost. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/bytes.h"
#include "common/scsi/inquiry.h"

namespace vjbod::scsi {

inline constexpr uint8_t vpd_page_cache_id = 0xc0;
inline constexpr size_t cache_id_bytes = 36;  // the text form of a UUID
// In the standard INQUIRY data of those that have the page. Another vendor's C0 is something else.
inline constexpr const char* cache_id_vendor = "VJBOD";

// `id` has cache_id_bytes printable characters.
void build_cache_id(Peripheral peripheral, const std::string& id, ByteWriter& out);
// Nothing when it is no such page.
std::optional<std::string> parse_cache_id(ConstBytes bytes);

}  // namespace vjbod::scsi
