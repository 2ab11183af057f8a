// SPDX-License-Identifier: Apache-2.0
// The numbers and headers of the Network Block Device protocol (proto.md of the NBD project), as
// plain structs with encode and decode. Pure. All numbers on the wire are big-endian.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "common/base/bytes.h"

namespace vjbod::initiator::nbd {

inline constexpr uint64_t greeting_magic = 0x4e42444d41474943;      // "NBDMAGIC"
inline constexpr uint64_t option_magic = 0x49484156454f5054;        // "IHAVEOPT"
inline constexpr uint64_t option_reply_magic = 0x0003e889045565a9;  // before every option reply
inline constexpr uint32_t request_magic = 0x25609513;
inline constexpr uint32_t simple_reply_magic = 0x67446698;
inline constexpr uint32_t structured_reply_magic = 0x668e33ef;

// Largest payload of one read or write; the maximum that we advertise and that clients assume when
// nothing is advertised.
inline constexpr uint32_t payload_bytes_max = 32u << 20;
// Longest string (export name, query, message) that the protocol allows.
inline constexpr uint32_t string_bytes_max = 4096;

namespace handshake_flag {  // server to client and back, "Handshake flags", "Client flags"
inline constexpr uint16_t fixed_newstyle = 1 << 0;
inline constexpr uint16_t no_zeroes = 1 << 1;
}  // namespace handshake_flag

namespace transmission_flag {  // of an export
inline constexpr uint16_t has_flags = 1 << 0;
inline constexpr uint16_t read_only = 1 << 1;
inline constexpr uint16_t send_flush = 1 << 2;
inline constexpr uint16_t send_fua = 1 << 3;
inline constexpr uint16_t send_trim = 1 << 5;
inline constexpr uint16_t send_write_zeroes = 1 << 6;
inline constexpr uint16_t send_df = 1 << 7;
inline constexpr uint16_t can_multi_conn = 1 << 8;
inline constexpr uint16_t send_cache = 1 << 10;
inline constexpr uint16_t send_fast_zero = 1 << 11;
}  // namespace transmission_flag

namespace command_flag {
inline constexpr uint16_t fua = 1 << 0;
inline constexpr uint16_t no_hole = 1 << 1;
inline constexpr uint16_t df = 1 << 2;
inline constexpr uint16_t fast_zero = 1 << 4;
}  // namespace command_flag

enum class Option : uint32_t {
  export_name = 1,
  abort = 2,
  list = 3,
  starttls = 5,
  info = 6,
  go = 7,
  structured_reply = 8,
  list_meta_context = 10,
  set_meta_context = 11,
};

enum class OptionReply : uint32_t {
  ack = 1,
  server = 2,
  info = 3,
  meta_context = 4,
  error_unsupported = 0x80000001,
  error_policy = 0x80000002,
  error_invalid = 0x80000003,
  error_platform = 0x80000004,
  error_tls_required = 0x80000005,
  error_unknown = 0x80000006,  // no such export, or it cannot be used now
  error_shutdown = 0x80000007,
  error_block_size_required = 0x80000008,
  error_too_big = 0x80000009,
};

enum class Info : uint16_t { export_ = 0, name = 1, description = 2, block_size = 3 };

enum class Command : uint16_t {
  read = 0,
  write = 1,
  disconnect = 2,
  flush = 3,
  trim = 4,
  cache = 5,
  write_zeroes = 6,
  block_status = 7,
};

enum class WireError : uint32_t {
  none = 0,
  not_permitted = 1,    // EPERM
  io = 5,               // EIO
  no_memory = 12,       // ENOMEM
  invalid = 22,         // EINVAL
  no_space = 28,        // ENOSPC
  overflow = 75,        // EOVERFLOW
  not_supported = 95,   // ENOTSUP
  shutting_down = 108,  // ESHUTDOWN
};
// The protocol knows only the errors above; everything else becomes the nearest of them.
WireError wire_error(int errno_value);

// --- handshake ---
inline constexpr size_t greeting_bytes = 18;
inline constexpr size_t client_flags_bytes = 4;
inline constexpr size_t option_header_bytes = 16;
inline constexpr size_t option_reply_header_bytes = 20;

std::array<std::byte, greeting_bytes> encode_greeting();

struct OptionHeader {
  Option option{};  // any number a client likes
  uint32_t length_bytes = 0;
};
// Nothing when the magic is wrong.
std::optional<OptionHeader> decode_option_header(std::span<const std::byte, option_header_bytes>);
std::array<std::byte, option_header_bytes> encode_option_header(const OptionHeader& header);

struct OptionReplyHeader {
  Option option{};
  OptionReply type{};
  uint32_t length_bytes = 0;
};
std::array<std::byte, option_reply_header_bytes> encode_option_reply_header(
    const OptionReplyHeader& header);
std::optional<OptionReplyHeader> decode_option_reply_header(
    std::span<const std::byte, option_reply_header_bytes>);

// --- transmission ---
inline constexpr size_t request_bytes = 28;
inline constexpr size_t simple_reply_bytes = 16;
inline constexpr size_t structured_reply_bytes = 20;
inline constexpr size_t chunk_offset_bytes = 8;  // before the data of an offset_data chunk
inline constexpr size_t chunk_error_bytes = 6;   // before the message of an error chunk

struct RequestHeader {
  uint16_t flags = 0;
  Command command{};    // any number a client likes
  uint64_t cookie = 0;  // the client's, returned untouched
  uint64_t offset_bytes = 0;
  uint32_t length_bytes = 0;
};
// Nothing when the magic is wrong.
std::optional<RequestHeader> decode_request(std::span<const std::byte, request_bytes>);
std::array<std::byte, request_bytes> encode_request(const RequestHeader& request);

struct SimpleReply {
  WireError error = WireError::none;
  uint64_t cookie = 0;
};
void encode_simple_reply(std::span<std::byte, simple_reply_bytes> into, const SimpleReply& reply);
std::optional<SimpleReply> decode_simple_reply(std::span<const std::byte, simple_reply_bytes>);

enum class Chunk : uint16_t {
  none = 0,
  offset_data = 1,  // 64 bits of offset, then data
  offset_hole = 2,
  error = 0x8001,  // 32 bits of error, 16 bits of message length, message
  error_offset = 0x8002,
};

struct StructuredReply {
  bool done = false;  // the last chunk of the request
  Chunk type{};
  uint64_t cookie = 0;
  uint32_t length_bytes = 0;
};
void encode_structured_reply(std::span<std::byte, structured_reply_bytes> into,
                             const StructuredReply& reply);
std::optional<StructuredReply> decode_structured_reply(
    std::span<const std::byte, structured_reply_bytes>);

}  // namespace vjbod::initiator::nbd
