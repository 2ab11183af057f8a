// SPDX-License-Identifier: Apache-2.0
// What makes a LUN the same LUN after a reconnect. Learned at the first probe, stored by the
// control layer, compared at every later one: a LUN that was replaced behind its name must not
// get one write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vjbod::initiator {

struct DiskIdentity {
  std::string naa;     // "naa." or "eui." and hexadecimal digits; empty: the target gives none
  std::string serial;  // VPD page 0x80, or empty
  uint64_t size_bytes = 0;
  uint32_t block_bytes = 0;

  bool operator==(const DiskIdentity&) const = default;
};

// Nothing when `found` may stand for `expected`: the same, or the same and grown. Else a sentence.
std::optional<std::string> identity_mismatch(const DiskIdentity& expected,
                                             const DiskIdentity& found);

}  // namespace vjbod::initiator
