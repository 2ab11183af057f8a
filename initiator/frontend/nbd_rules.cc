// SPDX-License-Identifier: Apache-2.0
#include "initiator/frontend/nbd_rules.h"

#include <algorithm>

namespace vjbod::initiator::nbd {

namespace {

// Fits page caches and file systems of every client, whatever the sector size below.
constexpr uint32_t preferred_bytes_min = 4096;

// "A flag not explicitly documented as applicable to the given request" is an error; FUA is
// documented as acceptable on all.
uint16_t flags_allowed(Command command, bool structured) {
  switch (command) {
    case Command::read: return command_flag::fua | (structured ? command_flag::df : uint16_t{0});
    case Command::write_zeroes:
      return command_flag::fua | command_flag::no_hole | command_flag::fast_zero;
    default: return command_flag::fua;
  }
}

Verdict refuse(WireError error, std::string_view reason) {
  return {error, reason};
}

Verdict check_range(const RequestHeader& request, const BlockGeometry& geometry) {
  if (request.length_bytes == 0) return refuse(WireError::invalid, "the length is zero");
  if (request.offset_bytes > geometry.size_bytes ||
      request.length_bytes > geometry.size_bytes - request.offset_bytes) {
    const bool writes =
        request.command == Command::write || request.command == Command::write_zeroes;
    return refuse(writes ? WireError::no_space : WireError::invalid,
                  "the range goes beyond the end of the disk");
  }
  if (request.offset_bytes % geometry.block_bytes != 0 ||
      request.length_bytes % geometry.block_bytes != 0) {
    return refuse(WireError::invalid, "offset and length must be multiples of the block size");
  }
  return {};
}

}  // namespace

uint16_t transmission_flags(const BlockGeometry& geometry, bool structured) {
  using namespace transmission_flag;
  // A flush on any connection is a flush of the disk, which covers every write replied to on any.
  uint16_t flags = has_flags | send_flush | send_cache | can_multi_conn;
  if (structured) flags |= send_df;
  if (geometry.read_only) return flags | read_only;
  flags |= send_fua;
  if (geometry.trim) flags |= send_trim;
  // The fast-zero flag says that the command flag is understood, not that zeroing is fast.
  if (geometry.write_zeroes) flags |= send_write_zeroes | send_fast_zero;
  return flags;
}

BlockSizes block_sizes(const BlockGeometry& geometry) {
  BlockSizes sizes;
  sizes.minimum_bytes = geometry.block_bytes;
  sizes.preferred_bytes =
      std::max({geometry.block_bytes, geometry.physical_block_bytes, preferred_bytes_min});
  sizes.maximum_bytes = payload_bytes_max;
  return sizes;
}

Verdict check_request(const RequestHeader& request, const BlockGeometry& geometry,
                      bool structured) {
  const uint16_t offered = transmission_flags(geometry, structured);
  switch (request.command) {
    case Command::read:
    case Command::write:
    case Command::flush:
    case Command::cache: break;
    case Command::trim:
    case Command::write_zeroes: {
      if (geometry.read_only) break;
      const uint16_t needed = request.command == Command::trim
                                  ? transmission_flag::send_trim
                                  : transmission_flag::send_write_zeroes;
      if ((offered & needed) == 0) {
        return refuse(WireError::invalid, "the disk does not offer this command");
      }
      break;
    }
    case Command::block_status:
      return refuse(WireError::invalid, "no metadata context was negotiated");
    default: return refuse(WireError::invalid, "unknown command");
  }
  if ((request.flags & ~flags_allowed(request.command, structured)) != 0) {
    return refuse(WireError::invalid, "unknown flag, or one that this command does not take");
  }
  if (request.command == Command::flush) return {};
  if (geometry.read_only && request.command != Command::read && request.command != Command::cache) {
    return refuse(WireError::not_permitted, "the disk is read-only");
  }
  if ((request.command == Command::read || request.command == Command::write) &&
      request.length_bytes > payload_bytes_max) {
    const bool unfragmented = (request.flags & command_flag::df) != 0;
    return refuse(unfragmented ? WireError::overflow : WireError::invalid,
                  "the length is beyond the maximum of 32 MiB");
  }
  if (Verdict verdict = check_range(request, geometry); verdict.error != WireError::none) {
    return verdict;
  }
  if ((request.flags & command_flag::fast_zero) != 0 && !geometry.fast_write_zeroes) {
    return refuse(WireError::not_supported, "the disk cannot zero faster than by writing zeros");
  }
  return {};
}

std::string_view reason_of(WireError error) {
  switch (error) {
    case WireError::none: return "";
    case WireError::not_permitted: return "the disk is write protected";
    case WireError::io: return "the disk answered with an I/O error";
    case WireError::no_memory: return "out of memory";
    case WireError::invalid: return "the disk refused the request";
    case WireError::no_space: return "no space is left where the disk is stored";
    case WireError::overflow: return "the value is too large";
    case WireError::not_supported: return "the disk does not support this";
    case WireError::shutting_down: return "the disk is being detached";
  }
  return "";
}

}  // namespace vjbod::initiator::nbd
