// SPDX-License-Identifier: Apache-2.0
#include "common/scsi/report_luns.h"

#include <algorithm>

namespace vjbod::scsi {

void build_report_luns(std::span<const uint16_t> numbers, ByteWriter& out) {
  out.u32(static_cast<uint32_t>(8 * numbers.size())).u32(0);
  for (const uint16_t number : numbers) out.bytes(encode_lun(number));
}

Result<ReportedLuns> parse_report_luns(ConstBytes bytes) {
  if (bytes.size() < 8) {
    return fail(Errc::short_data, "REPORT LUNS data of {} bytes, at least 8 are needed",
                bytes.size());
  }
  ReportedLuns reported;
  reported.list_bytes = load_big_endian<uint32_t>(&bytes[0]);
  const uint64_t received = std::min<uint64_t>(reported.list_bytes, bytes.size() - 8);
  for (uint64_t at = 8; at + 8 <= 8 + received; at += 8) {
    LunAddress address;
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), address.size(), address.begin());
    reported.luns.push_back(address);
  }
  return reported;
}

}  // namespace vjbod::scsi
