// SPDX-License-Identifier: Apache-2.0
// A TCP mover over a stream whose other end is the test.
#pragma once

#include <memory>

#include <gtest/gtest.h>

#include "common/iscsi/errc.h"
#include "common/transport/tcp/tcp_data_mover.h"
#include "tests/unit/common/transport/fake_byte_stream.h"
#include "tests/unit/common/transport/mover_worlds.h"

namespace vjbod::transport {

using iscsi::Errc;

inline std::vector<std::byte> counting(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

class TcpMover : public ::testing::Test {
 protected:
  void begin(Role role) {
    mover = std::make_unique<TcpDataMover>(reactor, std::make_unique<FakeByteStream>(wires), role);
    mover->start(events);
  }
  void log_in(iscsi::NegotiatedParameters parameters = large_segments()) {
    mover->enable_full_feature(parameters, numbers);
  }
  static iscsi::NegotiatedParameters large_segments() {
    iscsi::NegotiatedParameters parameters;
    parameters.our_max_recv_data_segment_length = 256 * 1024;
    parameters.peer_max_recv_data_segment_length = 64 * 1024;
    return parameters;
  }
  void run() {
    do reactor.run_until_idle();
    while (wires.poll());
  }
  std::vector<Wire::Received> sent(bool digests = false) {
    return Wire::decode(wires.outgoing, digests);
  }
  // A SCSI Command at the target; its handle there.
  TaskHandle command(uint32_t itt, bool digests = false) {
    iscsi::ScsiCommand pdu;
    pdu.itt = itt;
    wires.send(pdu, {}, digests);
    run();
    return events.controls.back().task;
  }
  void respond(uint32_t itt) {
    iscsi::ScsiResponse response;
    response.itt = itt;
    response.stat_sn = numbers.stat_sn;
    ++numbers.stat_sn;
    mover->send_control(response, {});
  }
  void TearDown() override {
    if (mover == nullptr || events.closed) return;
    mover->terminate({Errc::closed_locally, "The test is over."});
    wires.ended = true;
    wires.write_room = std::numeric_limits<size_t>::max();
    run();
    reactor.advance(TcpDataMover::flush_time_max);
    EXPECT_EQ(events.times_closed, 1);
  }
  void expect_closed(Errc code) {
    run();
    ASSERT_TRUE(events.closed.has_value());
    EXPECT_EQ(events.closed->code, code) << events.closed->text;
    EXPECT_NE(events.closed->text.find("peer:1"), std::string::npos) << events.closed->text;
    EXPECT_TRUE(wires.closed);
  }

  ManualReactor reactor;
  FakeByteStream::Wires wires;
  SequenceNumbers numbers;
  Recorder events;
  std::unique_ptr<TcpDataMover> mover;
};

}  // namespace vjbod::transport
