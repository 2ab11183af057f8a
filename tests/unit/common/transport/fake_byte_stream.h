// SPDX-License-Identifier: Apache-2.0
// A ByteStream without a socket: the test is the peer and the kernel. It says how many bytes a read
// or a write moves, when the peer ends or resets, and sees every call.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/iscsi/framer.h"
#include "common/transport/tcp/byte_stream.h"

namespace vjbod::transport {

// PDUs as bytes, and back.
struct Wire {
  struct Received {
    iscsi::Pdu pdu;
    std::vector<std::byte> data;

    template <typename T>
    const T& as() const {
      return std::get<T>(pdu);
    }
    template <typename T>
    bool is() const {
      return std::holds_alternative<T>(pdu);
    }
  };

  static std::vector<std::byte> encode(const iscsi::Pdu& pdu, ConstBytes data = {},
                                       bool digests = false) {
    std::array<std::byte, iscsi::header_and_digest_bytes> header{};
    std::array<std::byte, iscsi::trailer_bytes_max> trailer{};
    const auto length = static_cast<uint32_t>(data.size());
    const size_t header_length = encode_pdu_header(pdu, length, digests, header);
    Crc32c crc;
    crc.add(data);
    const size_t trailer_length =
        iscsi::encode_pdu_trailer(length, digests ? &crc : nullptr, trailer);
    std::vector<std::byte> bytes(header.begin(),
                                 header.begin() + static_cast<ptrdiff_t>(header_length));
    bytes.insert(bytes.end(), data.begin(), data.end());
    bytes.insert(bytes.end(), trailer.begin(),
                 trailer.begin() + static_cast<ptrdiff_t>(trailer_length));
    return bytes;
  }

  static std::vector<Received> decode(ConstBytes bytes, bool digests = false) {
    std::vector<Received> result;
    std::vector<std::byte> buffer(iscsi::pdu_bytes_max(size_t{1} << 20));
    iscsi::Framer::Rules rules;
    rules.header_digest = rules.data_digest = digests;
    rules.data_segment_length_max = 1u << 20;
    iscsi::Framer framer(buffer, rules);
    for (;;) {
      auto event = framer.next();
      EXPECT_TRUE(event.has_value()) << event.error().text;
      if (!event) return result;
      if (*event == iscsi::Framer::Event::pdu) {
        auto pdu = iscsi::decode_bhs(framer.bhs());
        EXPECT_TRUE(pdu.has_value());
        result.push_back({*pdu, {framer.data().begin(), framer.data().end()}});
      } else if (*event == iscsi::Framer::Event::starved) {
        if (bytes.empty()) return result;
        const auto space = framer.receive_space();
        const size_t part = std::min(space.buffered.size(), bytes.size());
        std::memcpy(space.buffered.data(), bytes.data(), part);
        framer.received(part);
        bytes = bytes.subspan(part);
      }
    }
  }
};

class FakeByteStream final : public ByteStream {
 public:
  // What the test sees and steers; outlives the stream, which its mover owns.
  struct Wires {
    std::vector<std::byte> incoming;                         // sent by the peer, not read yet
    std::vector<std::byte> outgoing;                         // written
    size_t read_max = std::numeric_limits<size_t>::max();    // bytes of one read
    size_t write_max = std::numeric_limits<size_t>::max();   // bytes of one write
    size_t write_room = std::numeric_limits<size_t>::max();  // bytes until writing blocks
    bool ended = false;  // the peer has closed, seen after `incoming`
    int read_error = 0;  // seen after `incoming`
    int write_error = 0;
    bool waits_to_read = false, waits_to_write = false;
    bool closed = false, sending_shut_down = false;
    int writes = 0;
    std::vector<Bytes> placed;  // the `first` of each read that had one
    ByteStreamEvents* events = nullptr;

    void send(ConstBytes bytes) { incoming.insert(incoming.end(), bytes.begin(), bytes.end()); }
    void send(const iscsi::Pdu& pdu, ConstBytes data = {}, bool digests = false) {
      send(Wire::encode(pdu, data, digests));
    }
    // Tells of readiness as an event loop would; false when there is none to tell of.
    bool poll() {
      if (closed) return false;
      if (waits_to_read && (!incoming.empty() || ended || read_error != 0)) {
        waits_to_read = false;
        events->on_readable();
        return true;
      }
      if (waits_to_write && (write_room > 0 || write_error != 0)) {
        waits_to_write = false;
        events->on_writable();
        return true;
      }
      return false;
    }
  };

  explicit FakeByteStream(Wires& wires) : wires_(wires) {}

  void set_events(ByteStreamEvents& events) override { wires_.events = &events; }

  IoResult read_some(Bytes first, Bytes second) override {
    EXPECT_FALSE(wires_.closed);
    EXPECT_GT(first.size() + second.size(), 0u);
    if (!first.empty()) wires_.placed.push_back(first);
    size_t left = std::min(wires_.read_max, wires_.incoming.size());
    size_t moved = 0;
    for (const Bytes part : {first, second}) {
      const size_t size = std::min(left, part.size());
      std::copy_n(wires_.incoming.begin() + static_cast<ptrdiff_t>(moved), size, part.begin());
      moved += size;
      left -= size;
    }
    wires_.incoming.erase(wires_.incoming.begin(),
                          wires_.incoming.begin() + static_cast<ptrdiff_t>(moved));
    if (moved > 0) return {.kind = IoResult::Kind::moved, .bytes = moved};
    if (wires_.read_error != 0)
      return {.kind = IoResult::Kind::failed, .error_number = wires_.read_error};
    return {.kind = wires_.ended ? IoResult::Kind::ended : IoResult::Kind::would_block};
  }

  IoResult write_some(std::span<const iovec> pieces) override {
    EXPECT_FALSE(wires_.closed || wires_.sending_shut_down);
    if (wires_.write_error != 0)
      return {.kind = IoResult::Kind::failed, .error_number = wires_.write_error};
    size_t left = std::min(wires_.write_max, wires_.write_room);
    size_t moved = 0;
    for (const iovec& piece : pieces) {
      EXPECT_GT(piece.iov_len, 0u);
      const size_t size = std::min(left, piece.iov_len);
      const auto* from = static_cast<const std::byte*>(piece.iov_base);
      wires_.outgoing.insert(wires_.outgoing.end(), from, from + size);
      moved += size;
      left -= size;
    }
    wires_.write_room -= moved;
    if (moved == 0) return {};
    ++wires_.writes;
    return {.kind = IoResult::Kind::moved, .bytes = moved};
  }

  void wait_readable() override { wires_.waits_to_read = true; }
  void wait_writable() override { wires_.waits_to_write = true; }
  void shutdown_send() override { wires_.sending_shut_down = true; }
  void close() override { wires_.closed = true; }
  std::string peer() const override { return "peer:1"; }
  std::string local() const override { return "local:2"; }

 private:
  Wires& wires_;
};

}  // namespace vjbod::transport
