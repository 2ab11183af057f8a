// SPDX-License-Identifier: Apache-2.0
#include "initiator/disk/disk_identity.h"

#include <fmt/format.h>

namespace vjbod::initiator {

std::optional<std::string> identity_mismatch(const DiskIdentity& expected,
                                             const DiskIdentity& found) {
  if (expected.naa != found.naa)
    return fmt::format("the LUN has the NAA identifier '{}', this disk is '{}'", found.naa,
                       expected.naa);
  if (expected.serial != found.serial)
    return fmt::format("the LUN has the serial number '{}', this disk has '{}'", found.serial,
                       expected.serial);
  if (expected.block_bytes != found.block_bytes)
    return fmt::format("the LUN has blocks of {} bytes, this disk has {}", found.block_bytes,
                       expected.block_bytes);
  if (found.size_bytes < expected.size_bytes)
    return fmt::format("the LUN has shrunk to {} bytes, this disk has {}", found.size_bytes,
                       expected.size_bytes);
  return std::nullopt;
}

}  // namespace vjbod::initiator
