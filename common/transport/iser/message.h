// SPDX-License-Identifier: Apache-2.0
// One iSER message as it is sent: the iSER header, the BHS, perhaps AHS, data. Pure.
#pragma once

#include <cstdint>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/iscsi/pdu.h"
#include "common/transport/iser/iser_wire.h"

namespace vjbod::transport {

// What a message may have beside its data and the two headers: MaxAHSLength.
inline constexpr size_t message_ahs_bytes_max = 256;

struct Message {
  IserHeader header;
  iscsi::Pdu pdu;
  ConstBytes bhs;
  ConstBytes data;
};

// Of the bytes that came, no more: lengths in the headers that say anything else are an error, as
// are AHS or data beyond the limits, and PDUs that iSER does not have (Data-In, Data-Out, R2T).
Result<Message> parse_message(ConstBytes received, uint32_t data_segment_length_max);

// Without data, which goes behind it.
void write_message_headers(const IserHeader& header, const iscsi::Pdu& pdu,
                           uint32_t data_segment_length, Bytes into);

}  // namespace vjbod::transport
