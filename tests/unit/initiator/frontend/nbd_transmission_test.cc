// SPDX-License-Identifier: Apache-2.0
#include "initiator/frontend/nbd_transmission.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <gtest/gtest.h>

#include "common/runtime/manual_reactor.h"
#include "tests/support/memory_block_device.h"
#include "tests/support/nbd_replies.h"

namespace vjbod::initiator::nbd {
namespace {

constexpr uint64_t mib = 1 << 20;
constexpr uint64_t disk_bytes = 34 * mib;

std::string pattern(size_t size, int seed) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 131 + (i >> 9) + seed);
  return text;
}

// A client and a socket around the transmission, without either.
class Peer final : private Deferred {
 public:
  explicit Peer(bool structured, const BlockGeometry& geometry = test::full_geometry(disk_bytes))
      : device(reactor, geometry),
        transmission(geometry, structured, reactor, *this),
        port(device, transmission) {
    transmission.set_port(port);
  }

  void send(Command command, uint64_t offset, uint32_t length, uint16_t flags = 0,
            std::string_view payload = {}) {
    if (command == Command::read) replies.expect_read(next_cookie, {offset, length});
    to_server += as_text(encode_request({flags, command, next_cookie++, offset, length}));
    to_server += payload;
    move_to_server();
  }
  void write(uint64_t offset, const std::string& data, uint16_t flags = 0) {
    send(Command::write, offset, static_cast<uint32_t>(data.size()), flags, data);
  }
  void read(uint64_t offset, uint32_t length, uint16_t flags = 0) {
    send(Command::read, offset, length, flags);
  }
  // Lets everything happen and returns the replies so far.
  std::vector<test::NbdReply>& settle() {
    reactor.run_until_idle();
    return replies.replies;
  }
  // The socket has room again.
  void wake() { reactor.defer(*this); }
  void move_to_server() {
    std::array<iovec, 2> targets;
    size_t at = 0;
    while (at < to_server.size()) {
      const size_t count = transmission.receive_targets(targets);
      if (count == 0) break;
      size_t moved = 0;
      for (size_t t = 0; t < count; ++t) {
        const size_t bytes =
            std::min({targets[t].iov_len, to_server.size() - at - moved, receive_max - moved});
        std::memcpy(targets[t].iov_base, to_server.data() + at + moved, bytes);
        moved += bytes;
      }
      at += moved;
      transmission.received(moved);
    }
    to_server.erase(0, at);
  }

  ManualReactor reactor;
  test::MemoryBlockDevice device;
  Transmission transmission;
  DevicePort port;
  test::NbdReplyReader replies;
  std::string to_server;  // what the "socket" still holds
  uint64_t next_cookie = 1;
  size_t receive_max = ~size_t{0};
  size_t send_max = ~size_t{0};
  bool client_reads = true;
  size_t sends = 0;

 private:
  void run_deferred() override {
    std::array<iovec, 16> parts;
    size_t count = 0;
    while (client_reads && (count = transmission.gather(parts)) > 0) {
      std::string bytes;
      for (size_t p = 0; p < count && bytes.size() < send_max; ++p) {
        const size_t taken = std::min(parts[p].iov_len, send_max - bytes.size());
        bytes.append(static_cast<const char*>(parts[p].iov_base), taken);
      }
      EXPECT_TRUE(replies.feed(bytes));
      transmission.sent(bytes.size());
      ++sends;
    }
    if (transmission.resume()) move_to_server();
  }
};

class NbdTransmission : public testing::TestWithParam<bool> {
 protected:
  Peer peer{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(, NbdTransmission, testing::Bool(), [](auto& param) {
  return param.param ? "StructuredReplies" : "SimpleReplies";
});

TEST_P(NbdTransmission, WhatIsWrittenIsReadBack) {
  const std::string data = pattern(4096, 1);
  peer.write(8192, data);
  peer.settle();
  peer.read(8192, 4096);
  const auto& replies = peer.settle();
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[0].error, WireError::none);
  EXPECT_EQ(replies[1].data, data);
  EXPECT_TRUE(peer.transmission.idle());
}

TEST_P(NbdTransmission, BytesMayComeAndGoInAnyPieces) {
  const std::string data = pattern(140 * 512, 2);
  for (const size_t step : {3u, 27u, 29u, 4096u}) {
    peer.receive_max = peer.send_max = step;
    peer.write(512, data);
    peer.read(0, 4096);
    peer.settle();
    peer.read(512, static_cast<uint32_t>(data.size()));
    EXPECT_EQ(peer.settle().back().data, data) << step;
  }
}

TEST_P(NbdTransmission, ManyRequestsOfOneReceiveAreAnsweredInOneSend) {
  size_t submitted = 0;
  peer.device.on_submit = [&](const BlockRequest&) { ++submitted; };
  for (uint64_t i = 0; i < 8; ++i) {
    peer.to_server += as_text(encode_request({0, Command::flush, i, 0, 0}));
  }
  peer.move_to_server();
  EXPECT_EQ(submitted, 8u);
  EXPECT_EQ(peer.settle().size(), 8u);
  EXPECT_EQ(peer.sends, 1u);
}

TEST_P(NbdTransmission, LargestRequestIsCutForTheDiskAndPutTogetherForTheClient) {
  uint64_t longest_read = 0, longest_write = 0;
  peer.device.on_submit = [&](const BlockRequest& request) {
    uint64_t& longest = request.operation == BlockOperation::read ? longest_read : longest_write;
    longest = std::max(longest, request.length_bytes);
  };
  const std::string data = pattern(payload_bytes_max, 3);
  peer.write(mib, data, command_flag::fua);
  ASSERT_EQ(peer.settle().size(), 1u);
  peer.read(mib, payload_bytes_max);
  ASSERT_EQ(peer.settle().size(), 2u);
  EXPECT_EQ(peer.settle()[1].data, data);
  EXPECT_EQ(longest_write, Transmission::streamed_piece_bytes_max);
  EXPECT_EQ(longest_read,
            GetParam() ? Transmission::streamed_piece_bytes_max : Transmission::piece_bytes_max);
}

TEST_P(NbdTransmission, LargePayloadIsReceivedIntoTheRequestsOwnMemory) {
  const Bytes* seen = nullptr;
  std::array<Bytes, 1> memory;
  peer.device.on_submit = [&](const BlockRequest& request) {
    memory[0] = request.data;
    seen = memory.data();
  };
  peer.to_server = as_text(encode_request({0, Command::write, 1, 0, 1 << 18}));
  peer.move_to_server();
  std::array<iovec, 2> targets;
  const size_t count = peer.transmission.receive_targets(targets);
  const void* place = targets[0].iov_base;
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(targets[0].iov_len, size_t{1} << 18);
  EXPECT_EQ(targets[1].iov_len, request_bytes) << "no payload behind it may be caught and copied";
  peer.to_server = pattern(1 << 18, 4);
  peer.move_to_server();
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(seen->data(), place);
  peer.settle();
}

TEST_P(NbdTransmission, RequestsBeyondTheLimitWaitAndAreDoneLater) {
  peer.device.hold();
  const size_t total = Transmission::requests_max + 10;
  for (size_t i = 0; i < total; ++i) peer.write(i * 512, pattern(512, static_cast<int>(i)));
  peer.settle();
  EXPECT_EQ(peer.device.waiting_count(), Transmission::requests_max);
  peer.device.release();
  EXPECT_EQ(peer.settle().size(), total);
  EXPECT_EQ(std::memcmp(peer.device.content().data() + (total - 1) * 512,
                        pattern(512, static_cast<int>(total - 1)).data(), 512),
            0);
}

TEST_P(NbdTransmission, PayloadInMemoryIsBoundedAndGoesOnWhenSomeIsFree) {
  peer.device.hold();
  uint64_t bytes = 0;
  peer.device.on_submit = [&](const BlockRequest& request) { bytes += request.length_bytes; };
  for (uint64_t i = 0; i < 3; ++i) peer.read(i * mib, payload_bytes_max);
  peer.settle();
  EXPECT_LE(bytes, Transmission::memory_bytes_max);
  EXPECT_GT(bytes, payload_bytes_max);
  peer.device.release();
  EXPECT_EQ(peer.settle().size(), 3u);
  EXPECT_EQ(bytes, 3 * uint64_t{payload_bytes_max});
}

TEST_P(NbdTransmission, LargestRequestsAndManySmallOnesNeverBlockEachOther) {
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < 100; ++i) peer.read(i * 512, 512);
    peer.read(0, payload_bytes_max);
    peer.write(0, pattern(payload_bytes_max, round));
    peer.read(0, payload_bytes_max, GetParam() ? command_flag::df : uint16_t{0});
  }
  EXPECT_EQ(peer.settle().size(), 206u);
  EXPECT_TRUE(peer.transmission.idle());
}

TEST_P(NbdTransmission, ClientThatDoesNotReadIsBoundedAndCanGoOn) {
  peer.client_reads = false;
  const size_t total = 2 * Transmission::requests_max;
  for (size_t i = 0; i < total; ++i) peer.read(0, mib);
  peer.settle();
  EXPECT_LE(peer.transmission.requests_under_way(), Transmission::requests_max);
  EXPECT_FALSE(peer.to_server.empty());
  peer.client_reads = true;
  peer.wake();
  EXPECT_EQ(peer.settle().size(), total);
  EXPECT_TRUE(peer.transmission.idle());
}

TEST_P(NbdTransmission, RefusedWriteIsSkippedAndAnsweredBehindItsPayload) {
  peer.send(Command::write, disk_bytes, 1024);
  EXPECT_EQ(peer.settle().size(), 0u);
  peer.to_server = pattern(1024, 1);
  peer.move_to_server();
  peer.read(0, 512);
  const auto& replies = peer.settle();
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[0].error, WireError::no_space);
  EXPECT_EQ(replies[1].error, WireError::none);
}

TEST_P(NbdTransmission, OversizeWriteIsSkippedNotHungUpOn) {
  const std::string data(payload_bytes_max + 512, 'x');
  peer.write(0, data);
  peer.read(0, 512);
  const auto& replies = peer.settle();
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[0].error, WireError::invalid);
  EXPECT_EQ(replies[1].data, std::string(512, '\0')) << "nothing was written";
}

TEST_P(NbdTransmission, UnknownCommandIsAnsweredAndTheNextRequestUnderstood) {
  peer.send(static_cast<Command>(77), 0, 512);
  peer.read(0, 512);
  const auto& replies = peer.settle();
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[0].error, WireError::invalid);
  EXPECT_EQ(replies[0].message, GetParam() ? "unknown command" : "");
}

TEST_P(NbdTransmission, BrokenMagicEndsTheInputWithAReason) {
  peer.to_server = std::string(request_bytes, 'x');
  peer.move_to_server();
  EXPECT_TRUE(peer.transmission.input_ended());
  EXPECT_NE(peer.transmission.violation(), "");
}

TEST_P(NbdTransmission, DisconnectLeavesNothingUnanswered) {
  peer.device.hold();
  peer.write(0, pattern(512, 1));
  peer.send(Command::disconnect, 0, 0);
  EXPECT_TRUE(peer.transmission.input_ended());
  EXPECT_FALSE(peer.transmission.idle());
  peer.device.release();
  EXPECT_EQ(peer.settle().size(), 1u);
  EXPECT_TRUE(peer.transmission.idle());
}

TEST_P(NbdTransmission, InputThatEndsInsideAPayloadLeavesNothingBehind) {
  for (const size_t received : {size_t{0}, size_t{100}, size_t{3 * mib + 5}}) {
    Peer other(GetParam());
    other.send(Command::write, 0, 8 * mib, 0, pattern(received, 1));
    other.transmission.end_input();
    other.settle();
    EXPECT_TRUE(other.transmission.idle()) << received;
  }
  peer.send(Command::write, disk_bytes, 1024, 0, "part");
  peer.transmission.end_input();
  peer.settle();
  EXPECT_TRUE(peer.transmission.idle());
}

TEST_P(NbdTransmission, DetachedDiskAnswersWhatIsUnderWayAndWhatWaits) {
  peer.device.hold();
  for (uint64_t i = 0; i < 3; ++i) peer.read(i * mib, payload_bytes_max);
  peer.settle();
  peer.transmission.stop();
  peer.device.release(ESHUTDOWN);
  const auto& replies = peer.settle();
  ASSERT_EQ(replies.size(), 2u + (peer.to_server.empty() ? 1u : 0u));
  for (const auto& reply : replies) EXPECT_EQ(reply.error, WireError::shutting_down);
  EXPECT_TRUE(peer.transmission.idle());
}

TEST_P(NbdTransmission, MemoryStaysUntilTheDiskIsDoneThoughNobodyListens) {
  peer.device.hold();
  peer.read(0, 4 * mib);
  peer.write(0, pattern(4096, 1));
  peer.transmission.stop();
  peer.transmission.drop_replies();
  peer.settle();
  EXPECT_EQ(peer.transmission.requests_under_way(), 2u);
  peer.device.release();
  EXPECT_EQ(peer.settle().size(), 0u);
  EXPECT_TRUE(peer.transmission.idle());
}

TEST_P(NbdTransmission, QueuedRepliesAreDroppedWhole) {
  peer.client_reads = false;
  peer.read(0, 4 * mib);
  peer.write(0, pattern(4096, 1));
  peer.settle();
  EXPECT_FALSE(peer.transmission.idle());
  peer.transmission.drop_replies();
  EXPECT_TRUE(peer.transmission.idle());
}

TEST_P(NbdTransmission, ReadErrorCarriesNoData) {
  peer.device.fail_next(EIO);
  peer.read(0, 4096);
  const auto& replies = peer.settle();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].error, WireError::io);
  EXPECT_EQ(replies[0].data, "");
}

TEST_P(NbdTransmission, OneFailedPieceFailsTheWholeRequestOnce) {
  for (const size_t failing : {1u, 3u, 8u}) {
    Peer other(GetParam());
    other.device.hold();
    other.read(0, 8 * mib);
    other.device.release();
    other.device.fail_next(ENOMEM, failing);
    other.settle();
    other.device.fail_next(EROFS, failing);
    other.write(0, pattern(8 * mib, 1));
    const auto& replies = other.settle();
    ASSERT_EQ(replies.size(), 2u);
    EXPECT_EQ(replies[0].error, WireError::no_memory);
    EXPECT_EQ(replies[1].error, WireError::not_permitted);
    EXPECT_TRUE(other.transmission.idle());
  }
}

TEST_P(NbdTransmission, ForcedUnitAccessReachesTheDiskWithEveryPieceOfAChange) {
  std::vector<std::pair<BlockOperation, bool>> seen;
  peer.device.on_submit = [&](const BlockRequest& request) {
    seen.emplace_back(request.operation, request.force_unit_access);
  };
  peer.write(0, pattern(2 * Transmission::streamed_piece_bytes_max, 1), command_flag::fua);
  peer.write(0, pattern(512, 1));
  peer.read(0, 512, command_flag::fua);
  peer.send(Command::trim, 0, 512, command_flag::fua);
  peer.send(Command::write_zeroes, 0, 512, command_flag::fua);
  peer.settle();
  const std::vector<std::pair<BlockOperation, bool>> expected = {
      {BlockOperation::write, true},  {BlockOperation::write, true},
      {BlockOperation::write, false}, {BlockOperation::read, false},
      {BlockOperation::trim, true},   {BlockOperation::write_zeroes, true}};
  EXPECT_EQ(seen, expected);
}

class NbdWithoutForcedUnitAccess : public testing::TestWithParam<bool> {
 protected:
  static BlockGeometry geometry() {
    BlockGeometry geometry = test::full_geometry(disk_bytes);
    geometry.force_unit_access = false;
    return geometry;
  }
  NbdWithoutForcedUnitAccess() {
    peer.device.on_submit = [this](const BlockRequest& request) {
      seen.emplace_back(request.operation, request.force_unit_access);
    };
  }
  Peer peer{GetParam(), geometry()};
  std::vector<std::pair<BlockOperation, bool>> seen;
};
INSTANTIATE_TEST_SUITE_P(, NbdWithoutForcedUnitAccess, testing::Bool(), [](auto& param) {
  return param.param ? "StructuredReplies" : "SimpleReplies";
});

TEST_P(NbdWithoutForcedUnitAccess, AWriteOfManyPiecesIsFlushedOnceBehindTheLast) {
  peer.device.hold();
  peer.write(0, pattern(3 * Transmission::streamed_piece_bytes_max, 1), command_flag::fua);
  EXPECT_TRUE(peer.settle().empty());
  EXPECT_EQ(seen.size(), 3u);
  peer.device.release();
  ASSERT_EQ(peer.settle().size(), 1u);
  EXPECT_EQ(peer.replies.replies[0].error, WireError::none);
  const std::vector<std::pair<BlockOperation, bool>> expected = {{BlockOperation::write, false},
                                                                 {BlockOperation::write, false},
                                                                 {BlockOperation::write, false},
                                                                 {BlockOperation::flush, false}};
  EXPECT_EQ(seen, expected);
  EXPECT_TRUE(peer.transmission.idle());
}

TEST_P(NbdWithoutForcedUnitAccess, AWriteOfOnePieceIsTheDisksMatter) {
  peer.write(0, pattern(512, 1), command_flag::fua);
  peer.settle();
  const std::vector<std::pair<BlockOperation, bool>> expected = {{BlockOperation::write, true}};
  EXPECT_EQ(seen, expected);
}

TEST_P(NbdWithoutForcedUnitAccess, AFailedFlushIsAFailedWrite) {
  peer.device.on_submit = [this](const BlockRequest& request) {
    if (request.operation != BlockOperation::write) peer.device.fail_next(EIO);
  };
  peer.write(0, pattern(2 * Transmission::streamed_piece_bytes_max, 1), command_flag::fua);
  ASSERT_EQ(peer.settle().size(), 1u);
  EXPECT_EQ(peer.replies.replies[0].error, WireError::io);
}

TEST_P(NbdTransmission, CommandsWithoutPayloadReachTheDiskAsTheyAre) {
  BlockOperation operation{};
  uint64_t offset = 0, length = 0;
  bool no_hole = false, fast_only = false;
  peer.device.on_submit = [&](const BlockRequest& request) {
    operation = request.operation;
    offset = request.offset_bytes;
    length = request.length_bytes;
    no_hole = request.no_hole;
    fast_only = request.fast_only;
  };
  peer.send(Command::write_zeroes, 512, 20 * mib, command_flag::no_hole);
  EXPECT_EQ(operation, BlockOperation::write_zeroes);
  EXPECT_EQ(length, 20 * mib);
  EXPECT_TRUE(no_hole);
  EXPECT_FALSE(fast_only);
  peer.settle();
  peer.send(Command::write_zeroes, 512, 20 * mib, command_flag::fast_zero);
  EXPECT_TRUE(fast_only);
  EXPECT_FALSE(no_hole);
  peer.settle();
  peer.send(Command::trim, 1024, 2048);
  EXPECT_EQ(operation, BlockOperation::trim);
  EXPECT_EQ(offset, 1024u);
  EXPECT_FALSE(no_hole);
  peer.settle();
  peer.send(Command::cache, 0, 512);
  EXPECT_EQ(operation, BlockOperation::cache);
  peer.send(Command::flush, 7, 9);
  EXPECT_EQ(operation, BlockOperation::flush);
  EXPECT_EQ(offset, 0u);
  EXPECT_EQ(length, 0u);
  EXPECT_EQ(peer.settle().size(), 5u);
}

TEST(NbdTransmissionStructured, LongReadComesInChunksUnlessForbidden) {
  Peer peer(true);
  peer.read(0, 4 * mib);
  peer.read(0, 4 * mib, command_flag::df);
  const auto& replies = peer.settle();
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[0].chunks, 4 * mib / Transmission::streamed_piece_bytes_max);
  EXPECT_EQ(replies[1].chunks, 1);
}

TEST(NbdTransmissionStructured, ErrorSaysWhyInWords) {
  Peer peer(true);
  peer.read(1, 512);
  EXPECT_EQ(peer.settle().at(0).message, "offset and length must be multiples of the block size");
}

TEST(NbdTransmissionMemory, IdleConnectionHoldsNoPayloadMemory) {
  Peer peer(true);
  peer.write(0, pattern(payload_bytes_max, 1));
  peer.settle();
  EXPECT_GT(peer.transmission.memory_bytes(), mib);
  peer.transmission.release_memory();
  EXPECT_EQ(peer.transmission.memory_bytes(), 0u);
  peer.read(0, 512);
  EXPECT_EQ(peer.settle().size(), 2u);
}

}  // namespace
}  // namespace vjbod::initiator::nbd
