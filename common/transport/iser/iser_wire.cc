// SPDX-License-Identifier: Apache-2.0
#include "common/transport/iser/iser_wire.h"

#include <algorithm>

#include "common/transport/rdma_errc.h"

namespace vjbod::transport {

namespace {

constexpr uint8_t type_control = 0x10;
constexpr uint8_t type_hello = 0x20;
constexpr uint8_t type_hello_reply = 0x30;
constexpr uint8_t type_mask = 0xf0;
constexpr uint8_t write_key_valid = 0x08;
constexpr uint8_t read_key_valid = 0x04;

constexpr uint8_t no_zero_based_addresses = 0x80;
constexpr uint8_t no_send_with_invalidate = 0x40;
constexpr size_t cm_flags_bytes = 4;
constexpr uint32_t own_mark = 0x564a4244;  // "VJBD"
constexpr uint8_t own_version = 1;
// What any initiator may send at login (RFC 7143 section 13.12).
constexpr uint32_t data_segment_bytes_min = 8192;

}  // namespace

Result<IserHeader> decode_iser_header(ConstBytes message) {
  if (message.size() < iser_header_bytes) {
    return fail(RdmaErrc::bad_length, "a message of {} bytes, shorter than an iSER header",
                message.size());
  }
  ByteReader reader(message.first(iser_header_bytes));
  const uint8_t flags = reader.u8();
  switch (flags & type_mask) {
    case type_control: break;
    case type_hello: return fail(RdmaErrc::out_of_state, "an iSER Hello that was not negotiated");
    case type_hello_reply:
      return fail(RdmaErrc::out_of_state, "an iSER HelloReply that was not asked for");
    default: return fail(RdmaErrc::bad_header, "an iSER message of unknown type {}", flags >> 4);
  }
  reader.skip(3);
  IserHeader header;
  const RemoteBuffer write{reader.u32(), reader.u64()};
  const RemoteBuffer read{reader.u32(), reader.u64()};
  if ((flags & write_key_valid) != 0) header.write = write;
  if ((flags & read_key_valid) != 0) header.read = read;
  return header;
}

void encode_iser_header(const IserHeader& header, std::span<std::byte, iser_header_bytes> into) {
  uint8_t flags = type_control;
  if (header.write) flags |= write_key_valid;
  if (header.read) flags |= read_key_valid;
  const RemoteBuffer write = header.write.value_or(RemoteBuffer{});
  const RemoteBuffer read = header.read.value_or(RemoteBuffer{});
  ByteWriter(into)
      .u8(flags)
      .zeros(3)
      .u32(write.key)
      .u64(write.address)
      .u32(read.key)
      .u64(read.address);
}

Result<CmPrivateData> decode_cm_private_data(ConstBytes bytes) {
  if (bytes.empty() || std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; }))
    return fail(RdmaErrc::bad_private_data, "no iSER header in the private data");
  if (bytes.size() < cm_flags_bytes) {
    return fail(RdmaErrc::bad_private_data, "{} bytes of private data, an iSER header has {}",
                bytes.size(), cm_flags_bytes);
  }
  ByteReader reader(bytes);
  const uint8_t flags = reader.u8();
  reader.skip(cm_flags_bytes - 1);
  CmPrivateData data;
  data.zero_based_addresses = (flags & no_zero_based_addresses) == 0;
  data.send_with_invalidate = (flags & no_send_with_invalidate) == 0;
  if (reader.u32() != own_mark || reader.u8() != own_version) return data;
  reader.skip(3);
  CmPrivateData::Own own;
  own.data_segment_bytes = reader.u32();
  own.receives = reader.u16();
  if (!reader.ok() || own.data_segment_bytes < data_segment_bytes_min || own.receives == 0) {
    return fail(RdmaErrc::bad_private_data,
                "private data that declares {} receive buffers of {} bytes", own.receives,
                own.data_segment_bytes);
  }
  data.own = own;
  return data;
}

std::array<std::byte, cm_private_data_bytes> encode_cm_private_data(const CmPrivateData& data) {
  std::array<std::byte, cm_private_data_bytes> bytes{};
  uint8_t flags = 0;
  if (!data.zero_based_addresses) flags |= no_zero_based_addresses;
  if (!data.send_with_invalidate) flags |= no_send_with_invalidate;
  ByteWriter writer(bytes);
  writer.u8(flags).zeros(3);
  if (data.own) {
    writer.u32(own_mark).u8(own_version).zeros(3);
    writer.u32(data.own->data_segment_bytes).u16(data.own->receives);
  }
  return bytes;
}

}  // namespace vjbod::transport
