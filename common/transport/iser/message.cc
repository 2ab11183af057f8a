// SPDX-License-Identifier: Apache-2.0
#include "common/transport/iser/message.h"

#include <variant>

#include "common/iscsi/pdu_codec.h"
#include "common/transport/rdma_errc.h"

namespace vjbod::transport {

Result<Message> parse_message(ConstBytes received, uint32_t data_segment_length_max) {
  Message message;
  auto header = decode_iser_header(received);
  if (!header) return fail(std::move(header).error());
  message.header = *header;
  const ConstBytes pdu = received.subspan(iser_header_bytes);
  if (pdu.size() < iscsi::bhs_bytes) {
    return fail(RdmaErrc::bad_length, "a message of {} bytes, too short for a PDU",
                received.size());
  }
  const iscsi::Bhs bhs = pdu.first<iscsi::bhs_bytes>();
  auto decoded = iscsi::decode_bhs(bhs);
  if (!decoded) return fail(std::move(decoded).error());
  message.pdu = *decoded;
  message.bhs = bhs;
  const size_t ahs = iscsi::bhs_total_ahs_bytes(bhs);
  const size_t data = iscsi::bhs_data_segment_length(bhs);
  const std::string_view name = name_of(opcode_of(message.pdu));
  if (ahs > message_ahs_bytes_max)
    return fail(iscsi::Errc::ahs_too_long, "a {} with {} bytes of AHS", name, ahs);
  if (data > data_segment_length_max) {
    return fail(iscsi::Errc::data_too_long, "a {} with {} bytes of data, the limit is {}", name,
                data, data_segment_length_max);
  }
  const size_t whole = iscsi::bhs_bytes + ahs + data;
  // With or without the padding that iSCSI has on a byte stream.
  if (pdu.size() < whole || pdu.size() > (whole + 3) / 4 * 4) {
    return fail(RdmaErrc::bad_length, "a {} of {} bytes came in a message with room for {}", name,
                whole, pdu.size());
  }
  if (std::holds_alternative<iscsi::DataIn>(message.pdu) ||
      std::holds_alternative<iscsi::DataOut>(message.pdu) ||
      std::holds_alternative<iscsi::R2t>(message.pdu))
    return fail(RdmaErrc::out_of_state, "a {}, which iSER does not have", name);
  message.data = pdu.subspan(iscsi::bhs_bytes + ahs, data);
  return message;
}

void write_message_headers(const IserHeader& header, const iscsi::Pdu& pdu,
                           uint32_t data_segment_length, Bytes into) {
  encode_iser_header(header, into.first<iser_header_bytes>());
  iscsi::encode_bhs(pdu, data_segment_length, 0,
                    into.subspan(iser_header_bytes).first<iscsi::bhs_bytes>());
}

}  // namespace vjbod::transport
