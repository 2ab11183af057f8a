// SPDX-License-Identifier: Apache-2.0
// What an export says of itself and which requests it takes, decided from the disk's geometry in
// one place. Pure.
#pragma once

#include <string_view>

#include "initiator/disk/block_device.h"
#include "initiator/frontend/nbd_wire.h"

namespace vjbod::initiator::nbd {

// `structured`: the client has negotiated structured replies.
uint16_t transmission_flags(const BlockGeometry& geometry, bool structured);

struct BlockSizes {
  uint32_t minimum_bytes = 0;
  uint32_t preferred_bytes = 0;
  uint32_t maximum_bytes = 0;
};
BlockSizes block_sizes(const BlockGeometry& geometry);

// Why a request is refused before it reaches the disk; `error` is none when it may go on.
struct Verdict {
  WireError error = WireError::none;
  std::string_view reason;  // a literal, for the client's error message
};
// Not for Command::disconnect, which has no reply.
Verdict check_request(const RequestHeader& request, const BlockGeometry& geometry, bool structured);

// What to tell a person about an error that the disk has answered. A literal.
std::string_view reason_of(WireError error);

}  // namespace vjbod::initiator::nbd
