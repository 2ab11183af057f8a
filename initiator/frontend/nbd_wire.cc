// SPDX-License-Identifier: Apache-2.0
#include "initiator/frontend/nbd_wire.h"

#include <cerrno>

namespace vjbod::initiator::nbd {

namespace {
constexpr uint16_t reply_flag_done = 1 << 0;
}  // namespace

WireError wire_error(int errno_value) {
  switch (errno_value) {
    case 0: return WireError::none;
    case EPERM:
    case EACCES:
    case EROFS: return WireError::not_permitted;
    case ENOMEM: return WireError::no_memory;
    case EINVAL: return WireError::invalid;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return WireError::no_space;
    case EOVERFLOW: return WireError::overflow;
    case EOPNOTSUPP: return WireError::not_supported;
    case ESHUTDOWN: return WireError::shutting_down;
    default: return WireError::io;
  }
}

std::array<std::byte, greeting_bytes> encode_greeting() {
  std::array<std::byte, greeting_bytes> bytes;
  ByteWriter(bytes)
      .u64(greeting_magic)
      .u64(option_magic)
      .u16(handshake_flag::fixed_newstyle | handshake_flag::no_zeroes);
  return bytes;
}

std::optional<OptionHeader> decode_option_header(
    std::span<const std::byte, option_header_bytes> bytes) {
  ByteReader reader(bytes);
  if (reader.u64() != option_magic) return std::nullopt;
  OptionHeader header;
  header.option = static_cast<Option>(reader.u32());
  header.length_bytes = reader.u32();
  return header;
}

std::array<std::byte, option_header_bytes> encode_option_header(const OptionHeader& header) {
  std::array<std::byte, option_header_bytes> bytes;
  ByteWriter(bytes)
      .u64(option_magic)
      .u32(static_cast<uint32_t>(header.option))
      .u32(header.length_bytes);
  return bytes;
}

std::array<std::byte, option_reply_header_bytes> encode_option_reply_header(
    const OptionReplyHeader& header) {
  std::array<std::byte, option_reply_header_bytes> bytes;
  ByteWriter(bytes)
      .u64(option_reply_magic)
      .u32(static_cast<uint32_t>(header.option))
      .u32(static_cast<uint32_t>(header.type))
      .u32(header.length_bytes);
  return bytes;
}

std::optional<OptionReplyHeader> decode_option_reply_header(
    std::span<const std::byte, option_reply_header_bytes> bytes) {
  ByteReader reader(bytes);
  if (reader.u64() != option_reply_magic) return std::nullopt;
  OptionReplyHeader header;
  header.option = static_cast<Option>(reader.u32());
  header.type = static_cast<OptionReply>(reader.u32());
  header.length_bytes = reader.u32();
  return header;
}

std::optional<RequestHeader> decode_request(std::span<const std::byte, request_bytes> bytes) {
  ByteReader reader(bytes);
  if (reader.u32() != request_magic) return std::nullopt;
  RequestHeader request;
  request.flags = reader.u16();
  request.command = static_cast<Command>(reader.u16());
  request.cookie = reader.u64();
  request.offset_bytes = reader.u64();
  request.length_bytes = reader.u32();
  return request;
}

std::array<std::byte, request_bytes> encode_request(const RequestHeader& request) {
  std::array<std::byte, request_bytes> bytes;
  ByteWriter(bytes)
      .u32(request_magic)
      .u16(request.flags)
      .u16(static_cast<uint16_t>(request.command))
      .u64(request.cookie)
      .u64(request.offset_bytes)
      .u32(request.length_bytes);
  return bytes;
}

void encode_simple_reply(std::span<std::byte, simple_reply_bytes> into, const SimpleReply& reply) {
  ByteWriter(into)
      .u32(simple_reply_magic)
      .u32(static_cast<uint32_t>(reply.error))
      .u64(reply.cookie);
}

std::optional<SimpleReply> decode_simple_reply(
    std::span<const std::byte, simple_reply_bytes> bytes) {
  ByteReader reader(bytes);
  if (reader.u32() != simple_reply_magic) return std::nullopt;
  SimpleReply reply;
  reply.error = static_cast<WireError>(reader.u32());
  reply.cookie = reader.u64();
  return reply;
}

void encode_structured_reply(std::span<std::byte, structured_reply_bytes> into,
                             const StructuredReply& reply) {
  ByteWriter(into)
      .u32(structured_reply_magic)
      .u16(reply.done ? reply_flag_done : 0)
      .u16(static_cast<uint16_t>(reply.type))
      .u64(reply.cookie)
      .u32(reply.length_bytes);
}

std::optional<StructuredReply> decode_structured_reply(
    std::span<const std::byte, structured_reply_bytes> bytes) {
  ByteReader reader(bytes);
  if (reader.u32() != structured_reply_magic) return std::nullopt;
  StructuredReply reply;
  reply.done = (reader.u16() & reply_flag_done) != 0;
  reply.type = static_cast<Chunk>(reader.u16());
  reply.cookie = reader.u64();
  reply.length_bytes = reader.u32();
  return reply;
}

}  // namespace vjbod::initiator::nbd
