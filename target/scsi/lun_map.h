// SPDX-License-Identifier: Apache-2.0
// LUN number to mapped unit, for one nexus; ordered by number. On the nexus's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/scsi/lun.h"
#include "target/scsi/mapped_unit.h"

namespace vjbod::scsi {

class LunMap {
 public:
  // Null when the address names none.
  MappedUnit* find(const LunAddress& address) const;
  MappedUnit* find(uint16_t number) const;
  const std::vector<std::unique_ptr<MappedUnit>>& units() const { return units_; }

  // The number must be free.
  void add(std::unique_ptr<MappedUnit> unit);
  std::unique_ptr<MappedUnit> remove(uint16_t number);

 private:
  std::vector<std::unique_ptr<MappedUnit>> units_;
};

}  // namespace vjbod::scsi
