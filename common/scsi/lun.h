// SPDX-License-Identifier: Apache-2.0
// The eight-byte LUN (SAM-5 4.7). We give out numbers 0 to 16383 at the first level, in the
// peripheral (below 256) or flat addressing method, and take both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace vjbod::scsi {

using LunAddress = std::array<std::byte, 8>;
inline constexpr uint16_t lun_number_max = 0x3fff;

LunAddress encode_lun(uint16_t number);
// Nothing for another addressing method or a second level.
std::optional<uint16_t> decode_lun(const LunAddress& address);

}  // namespace vjbod::scsi
