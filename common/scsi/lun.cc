// SPDX-License-Identifier: Apache-2.0
#include "common/scsi/lun.h"

#include <algorithm>

#include "common/base/check.h"

namespace vjbod::scsi {

LunAddress encode_lun(uint16_t number) {
  VJBOD_CHECK(number <= lun_number_max);
  LunAddress address{};
  const unsigned method = number < 256 ? 0 : 1;
  address[0] = static_cast<std::byte>(method << 6 | number >> 8);
  address[1] = static_cast<std::byte>(number & 0xff);
  return address;
}

std::optional<uint16_t> decode_lun(const LunAddress& address) {
  if (!std::all_of(address.begin() + 2, address.end(),
                   [](std::byte b) { return b == std::byte{0}; })) {
    return std::nullopt;
  }
  const auto high = std::to_integer<unsigned>(address[0]);
  const auto low = std::to_integer<unsigned>(address[1]);
  switch (high >> 6) {
    case 0: return high == 0 ? std::optional<uint16_t>(static_cast<uint16_t>(low)) : std::nullopt;
    case 1: return static_cast<uint16_t>((high & 0x3f) << 8 | low);
    default: return std::nullopt;
  }
}

}  // namespace vjbod::scsi
