// SPDX-License-Identifier: Apache-2.0
// Over which ways RDMA has failed lately, so that a flapping one does not cost its deadline at each
// reconnect. Pure. One failure means nothing: after a loss RDMA comes first again. From the second
// in a row on the way is left out for a while that doubles. Only what iSCSI got through after
// counts: a box that was away altogether teaches nothing about RDMA.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/runtime/clock.h"
#include "common/transport/connector.h"

namespace vjbod::initiator {

class RdmaMemory {
 public:
  static constexpr Duration avoided_first = std::chrono::seconds(60);
  static constexpr Duration avoided_longest = std::chrono::minutes(30);

  void failed(const transport::Endpoint& way, TimePoint now);
  void worked(const transport::Endpoint& way);
  // Until when the way is left out; nothing when it may be tried now.
  std::optional<TimePoint> avoided_until(const transport::Endpoint& way, TimePoint now) const;
  void forget() { ways_.clear(); }

 private:
  struct Way {
    transport::Endpoint endpoint;
    uint32_t failures = 0;  // in a row
    TimePoint until{};
  };
  std::vector<Way> ways_;  // a handful
};

}  // namespace vjbod::initiator
