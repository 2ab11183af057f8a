// SPDX-License-Identifier: Apache-2.0
// Headers: any 48 bytes are decoded or refused; what was decoded encodes to a header that says the
// same.
#include <cstring>

#include "common/base/check.h"
#include "common/iscsi/pdu_codec.h"
#include "common/iscsi/pdu_rules.h"

using namespace vjbod;
using namespace vjbod::iscsi;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < bhs_bytes) return 0;
  const Bhs bhs(reinterpret_cast<const std::byte*>(data), bhs_bytes);
  auto pdu = decode_bhs(bhs);
  VJBOD_CHECK(pdu.has_value() == is_known(bhs_opcode(bhs)));
  if (!pdu) return 0;
  const uint32_t length = bhs_data_segment_length(bhs);
  const size_t ahs_bytes = bhs_total_ahs_bytes(bhs);
  if (auto reason = invalid(*pdu, length, ahs_bytes)) VJBOD_CHECK(!reason->empty());

  std::array<std::byte, bhs_bytes> once, again;
  encode_bhs(*pdu, length, static_cast<uint8_t>(ahs_bytes / 4), once);
  auto same = decode_bhs(once);
  VJBOD_CHECK(same.has_value() && same->index() == pdu->index());
  encode_bhs(*same, length, static_cast<uint8_t>(ahs_bytes / 4), again);
  VJBOD_CHECK(once == again);
  return 0;
}
