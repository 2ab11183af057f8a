// SPDX-License-Identifier: Apache-2.0
// What INQUIRY says about a unit: standard data and vital product data pages.
#pragma once

#include <cstdint>

#include "common/base/bytes.h"
#include "common/scsi/cache_id_page.h"
#include "target/scsi/mapped_unit.h"

namespace vjbod::scsi {

inline constexpr const char* vendor_identification = cache_id_vendor;
inline constexpr const char* product_identification = "Virtual Disk";
inline constexpr const char* product_revision = "0.1";

// `mapped`: whether there is a unit at the LUN that was asked.
void build_standard_page(bool mapped, ByteWriter& out);
// False when there is no such page.
bool build_vpd_page(const MappedUnit& unit, uint8_t page, ByteWriter& out);

}  // namespace vjbod::scsi
