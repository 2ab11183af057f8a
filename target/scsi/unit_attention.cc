// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/unit_attention.h"

#include <bit>

namespace vjbod::scsi {

AdditionalSense sense_of(UnitAttention attention) {
  switch (attention) {
    case UnitAttention::power_on_or_reset: return asc::power_on_or_reset;
    case UnitAttention::device_reset: return asc::device_reset;
    case UnitAttention::capacity_changed: return asc::capacity_changed;
    case UnitAttention::mode_parameters_changed: return asc::mode_parameters_changed;
    case UnitAttention::reported_luns_changed: return asc::reported_luns_changed;
  }
  return asc::none;
}

void UnitAttentions::raise(UnitAttention attention) {
  constexpr unsigned resets =
      bit(UnitAttention::power_on_or_reset) | bit(UnitAttention::device_reset);
  pending_ |= bit(attention);
  const unsigned pending_resets = pending_ & resets;
  if (pending_resets != 0) {
    const unsigned strongest = pending_resets & (~pending_resets + 1);
    pending_ = (pending_ & ~resets) | strongest;
  }
}

std::optional<UnitAttention> UnitAttentions::take() {
  if (pending_ == 0) return std::nullopt;
  const auto first = static_cast<UnitAttention>(std::countr_zero(pending_));
  clear(first);
  return first;
}

}  // namespace vjbod::scsi
