// SPDX-License-Identifier: Apache-2.0
#include "common/base/crc32c.h"

#include <isa-l/crc.h>

namespace vjbod {

namespace {
constexpr size_t isal_length_max = size_t{1} << 30;  // the library takes an int
}

void Crc32c::add(ConstBytes bytes) {
  while (!bytes.empty()) {
    ConstBytes part = bytes.first(std::min(bytes.size(), isal_length_max));
    // ISA-L does not write, but its prototype lacks the const.
    auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(part.data()));
    state_ = crc32_iscsi(data, static_cast<int>(part.size()), state_);
    bytes = bytes.subspan(part.size());
  }
}

uint32_t crc32c(ConstBytes bytes) {
  Crc32c crc;
  crc.add(bytes);
  return crc.value();
}

}  // namespace vjbod
