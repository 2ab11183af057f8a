// SPDX-License-Identifier: Apache-2.0
// CRC32C (Castagnoli), the digest of RFC 7143 section 13.1, through ISA-L.
#pragma once

#include <cstdint>

#include "common/base/bytes.h"

namespace vjbod {

// A running CRC: start from Crc32c{}, add spans in order, take the value. The value is the number
// whose four bytes go on the wire in little-endian order (RFC 7143 section 13.1 and RFC 3385).
class Crc32c {
 public:
  void add(ConstBytes bytes);
  uint32_t value() const { return ~state_; }

 private:
  uint32_t state_ = 0xffffffff;
};

uint32_t crc32c(ConstBytes bytes);

}  // namespace vjbod
