// SPDX-License-Identifier: Apache-2.0
#include "initiator/session/rdma_memory.h"

#include <algorithm>

namespace vjbod::initiator {

namespace {

constexpr uint32_t doublings_max = 5;  // from a minute to more than the longest
constexpr size_t ways_max = 64;        // addresses come and go; the oldest is forgotten

bool same(const transport::Endpoint& a, const transport::Endpoint& b) {
  return a.address == b.address && a.port == b.port && a.source_address == b.source_address;
}

}  // namespace

void RdmaMemory::failed(const transport::Endpoint& way, TimePoint now) {
  auto found = std::find_if(ways_.begin(), ways_.end(),
                            [&](const Way& known) { return same(known.endpoint, way); });
  if (found == ways_.end()) {
    if (ways_.size() == ways_max) ways_.erase(ways_.begin());
    ways_.push_back({way, 0, {}});
    found = ways_.end() - 1;
  }
  ++found->failures;
  if (found->failures < 2) return;
  const uint32_t doublings = std::min(found->failures - 2, doublings_max);
  found->until = now + std::min<Duration>(avoided_first * (1u << doublings), avoided_longest);
}

void RdmaMemory::worked(const transport::Endpoint& way) {
  std::erase_if(ways_, [&](const Way& known) { return same(known.endpoint, way); });
}

std::optional<TimePoint> RdmaMemory::avoided_until(const transport::Endpoint& way,
                                                   TimePoint now) const {
  for (const Way& known : ways_)
    if (same(known.endpoint, way) && known.failures > 1 && now < known.until) return known.until;
  return std::nullopt;
}

}  // namespace vjbod::initiator
