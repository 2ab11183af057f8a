// SPDX-License-Identifier: Apache-2.0
// iSER on the wire: the header before every PDU (RFC 7145 section 9), and the private data of the
// connection manager's messages (InfiniBand annex A12, which RoCE uses too). Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "common/base/bytes.h"
#include "common/base/result.h"

namespace vjbod::transport {

inline constexpr size_t iser_header_bytes = 28;

// A buffer that the peer lends for RDMA. The address is that of the first byte that the transfer is
// to move: for a write, the one behind the immediate data (as the Linux initiators do it, and as
// TaggedBufferForSolicitedDataOnly=Yes says), so nobody adds that offset again.
struct RemoteBuffer {
  uint32_t key = 0;
  uint64_t address = 0;
  bool operator==(const RemoteBuffer&) const = default;
};

struct IserHeader {
  std::optional<RemoteBuffer> write;  // the target reads it
  std::optional<RemoteBuffer> read;   // the target writes it
  bool operator==(const IserHeader&) const = default;
};

// Of a message whose first bytes these are; errors are RdmaErrc. Hello messages are an error:
// nobody here asks for them (iSERHelloRequired=No).
Result<IserHeader> decode_iser_header(ConstBytes message);
void encode_iser_header(const IserHeader& header, std::span<std::byte, iser_header_bytes> into);

// In connect requests and their answers. All other bytes are ignored, but for our own mark, by
// which two of our ends know that what the other one declares is what it has posted; others (the
// Linux initiators) declare more than that.
struct CmPrivateData {
  struct Own {
    uint32_t data_segment_bytes = 0;  // of each posted buffer
    uint16_t receives = 0;            // how many are posted in full feature phase
    bool operator==(const Own&) const = default;
  };
  bool zero_based_addresses = false;  // request: can; answer: does
  bool send_with_invalidate = false;  // request: takes it; answer: will use it
  std::optional<Own> own;
  bool operator==(const CmPrivateData&) const = default;
};
inline constexpr size_t cm_private_data_bytes = 20;

// No bytes, or zeros only (what a connection manager makes of none), are an error.
Result<CmPrivateData> decode_cm_private_data(ConstBytes bytes);
std::array<std::byte, cm_private_data_bytes> encode_cm_private_data(const CmPrivateData& data);

}  // namespace vjbod::transport
