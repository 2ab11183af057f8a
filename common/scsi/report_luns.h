// SPDX-License-Identifier: Apache-2.0
// REPORT LUNS parameter data (SPC-4 6.33). Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/scsi/errc.h"
#include "common/scsi/lun.h"

namespace vjbod::scsi {

void build_report_luns(std::span<const uint16_t> numbers, ByteWriter& out);
inline constexpr size_t report_luns_bytes(size_t count) {
  return 8 + 8 * count;
}

struct ReportedLuns {
  std::vector<LunAddress> luns;  // as received, other addressing methods too
  // How many bytes the whole list has; more than was received means: ask again with more room.
  uint64_t list_bytes = 0;
};
Result<ReportedLuns> parse_report_luns(ConstBytes bytes);

}  // namespace vjbod::scsi
