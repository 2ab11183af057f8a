// SPDX-License-Identifier: Apache-2.0
// Whether the way between two interfaces carries full-size packets, there and back. Takes a second
// at the most. Main reactor.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/runtime/reactor.h"

namespace vjbod::initiator {

struct PacketProbe {
  std::string host_interface, host_address, remote_address;
  uint32_t full_bytes = 0;  // the MTU
};

struct PacketProbeResult {
  bool small = false, full = false;  // packets of that size were answered
  std::string not_tried;             // why; empty: they were sent
};

void probe_packets(Reactor& reactor, const PacketProbe& probe,
                   std::function<void(const PacketProbeResult&)> done);

}  // namespace vjbod::initiator
