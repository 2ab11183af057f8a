// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/lun_map.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace vjbod::scsi {

namespace {

auto position_of(const std::vector<std::unique_ptr<MappedUnit>>& units, uint16_t number) {
  return std::lower_bound(units.begin(), units.end(), number,
                          [](const auto& unit, uint16_t n) { return unit->number < n; });
}

}  // namespace

MappedUnit* LunMap::find(const LunAddress& address) const {
  const auto number = decode_lun(address);
  return number ? find(*number) : nullptr;
}

MappedUnit* LunMap::find(uint16_t number) const {
  const auto position = position_of(units_, number);
  return position != units_.end() && (*position)->number == number ? position->get() : nullptr;
}

void LunMap::add(std::unique_ptr<MappedUnit> unit) {
  const auto position = position_of(units_, unit->number);
  VJBOD_CHECK(position == units_.end() || (*position)->number != unit->number,
              "LUN {} is mapped already", unit->number);
  units_.insert(position, std::move(unit));
}

std::unique_ptr<MappedUnit> LunMap::remove(uint16_t number) {
  const auto position = position_of(units_, number);
  VJBOD_CHECK(position != units_.end() && (*position)->number == number, "no LUN {}", number);
  const size_t index = static_cast<size_t>(position - units_.begin());
  std::unique_ptr<MappedUnit> unit = std::move(units_[index]);
  units_.erase(units_.begin() + static_cast<std::ptrdiff_t>(index));
  return unit;
}

}  // namespace vjbod::scsi
