// SPDX-License-Identifier: Apache-2.0
// Unit attention conditions of one LUN at one nexus (SAM-5 5.14): what happened to the unit that
// this initiator has not been told yet. Each is reported once, in order of precedence.
#pragma once

#include <cstdint>
#include <optional>

#include "common/scsi/asc.h"

namespace vjbod::scsi {

enum class UnitAttention : uint8_t {  // highest precedence first (SAM-5 table 49)
  power_on_or_reset,
  device_reset,
  capacity_changed,
  mode_parameters_changed,
  reported_luns_changed,
};
AdditionalSense sense_of(UnitAttention attention);

class UnitAttentions {
 public:
  bool any() const { return pending_ != 0; }
  // A reset is told once: a weaker one that follows before the report adds nothing, and a stronger
  // one takes the weaker one's place.
  void raise(UnitAttention attention);
  void clear(UnitAttention attention) { pending_ &= ~bit(attention); }
  // The one to report now; it counts as reported.
  std::optional<UnitAttention> take();

 private:
  static constexpr unsigned bit(UnitAttention attention) {
    return 1U << static_cast<unsigned>(attention);
  }
  unsigned pending_ = 0;
};

}  // namespace vjbod::scsi
