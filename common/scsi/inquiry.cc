// SPDX-License-Identifier: Apache-2.0
#include "common/scsi/inquiry.h"

#include "common/base/check.h"
#include "common/scsi/text_field.h"

namespace vjbod::scsi {

namespace {

std::byte encode(Peripheral peripheral) {
  return static_cast<std::byte>(peripheral.qualifier << 5 | peripheral.device_type);
}

}  // namespace

void build(const StandardInquiry& inquiry, ByteWriter& out) {
  VJBOD_CHECK(inquiry.version_descriptors.size() <= 8);
  out.u8(std::to_integer<uint8_t>(encode(inquiry.peripheral)))
      .u8(inquiry.removable ? 0x80 : 0)
      .u8(inquiry.version)
      .u8(0x12)  // HISUP, response data format 2
      .u8(standard_inquiry_bytes - 5)
      .u8(inquiry.protect ? 0x01 : 0)
      .u8(0)
      .u8(inquiry.task_set ? 0x02 : 0);
  put_text(inquiry.vendor, 8, out);
  put_text(inquiry.product, 16, out);
  put_text(inquiry.revision, 4, out);
  out.zeros(58 - 36);
  for (const uint16_t descriptor : inquiry.version_descriptors) out.u16(descriptor);
  out.zeros(standard_inquiry_bytes - 58 - 2 * inquiry.version_descriptors.size());
}

Result<StandardInquiry> parse_standard_inquiry(ConstBytes bytes) {
  if (bytes.size() < 36) {
    return fail(Errc::short_data, "INQUIRY data of {} bytes, at least 36 are needed", bytes.size());
  }
  StandardInquiry inquiry;
  const auto byte = [&](size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  inquiry.peripheral = {static_cast<uint8_t>(byte(0) >> 5), static_cast<uint8_t>(byte(0) & 0x1f)};
  inquiry.removable = (byte(1) & 0x80) != 0;
  inquiry.version = static_cast<uint8_t>(byte(2));
  inquiry.protect = (byte(5) & 0x01) != 0;
  inquiry.task_set = (byte(7) & 0x02) != 0;
  inquiry.vendor = take_text(bytes.subspan(8, 8));
  inquiry.product = take_text(bytes.subspan(16, 16));
  inquiry.revision = take_text(bytes.subspan(32, 4));
  const size_t end = std::min<size_t>({bytes.size(), 5 + byte(4), 74});
  for (size_t at = 58; at + 2 <= end; at += 2) {
    const auto descriptor = load_big_endian<uint16_t>(&bytes[at]);
    if (descriptor != 0) inquiry.version_descriptors.push_back(descriptor);
  }
  return inquiry;
}

}  // namespace vjbod::scsi
