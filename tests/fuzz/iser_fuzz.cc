// SPDX-License-Identifier: Apache-2.0
// The iSER header and the private data of the connection manager. The first byte chooses; what is
// decoded must come back when it is encoded and decoded again.
#include <cstdlib>

#include "common/transport/iser/iser_wire.h"

using namespace vjbod;
using namespace vjbod::transport;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const ConstBytes bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    const auto header = decode_iser_header(bytes);
    if (!header) return 0;
    std::array<std::byte, iser_header_bytes> again;
    encode_iser_header(*header, again);
    const auto decoded = decode_iser_header(again);
    if (!decoded || *decoded != *header) std::abort();
  } else {
    const auto private_data = decode_cm_private_data(bytes);
    if (!private_data) return 0;
    const auto again = encode_cm_private_data(*private_data);
    // Without any flag and without our mark it is all zeros, which is none.
    const bool none = private_data->zero_based_addresses && private_data->send_with_invalidate &&
                      !private_data->own;
    if (none) return 0;
    const auto decoded = decode_cm_private_data(again);
    if (!decoded || *decoded != *private_data) std::abort();
  }
  return 0;
}
