// SPDX-License-Identifier: Apache-2.0
// What the TCP mover does in one turn, and what it leaves for later.
#include <gtest/gtest.h>

#include "tests/unit/common/transport/tcp_mover_fixture.h"

namespace vjbod::transport {
namespace {

TEST_F(TcpMover, EverythingQueuedInOneTurnLeavesInOneWrite) {
  begin(Role::target);
  log_in();
  const auto data = counting(4096);
  std::vector<TaskHandle> tasks;
  for (uint32_t i = 0; i < 8; ++i) tasks.push_back(command(i));

  for (uint32_t i = 0; i < 8; ++i) {
    mover->put_data(tasks[i], 0, data);
    respond(i);
  }
  run();

  EXPECT_EQ(wires.writes, 1);
  const auto pdus = sent();
  ASSERT_EQ(pdus.size(), 8u);  // each status rides on its Data-In
  for (uint32_t i = 0; i < 8; ++i) {
    const auto& pdu = pdus[i].as<iscsi::DataIn>();
    EXPECT_TRUE(pdu.has_status && pdu.final);
    EXPECT_EQ(pdu.itt, i);
    EXPECT_EQ(pdu.stat_sn, SerialNumber(i));
    EXPECT_EQ(pdus[i].data, data);
  }
}

TEST_F(TcpMover, LifeIsToldOncePerTurnHoweverManyPdusCame) {
  begin(Role::target);
  for (int i = 0; i < 20; ++i) wires.send(iscsi::LoginRequest{});
  run();
  EXPECT_EQ(events.controls.size(), 20u);
  EXPECT_EQ(events.alive, 1);
}

TEST_F(TcpMover, APeerThatAsksAndNeverReadsIsNotReadFromAnyMore) {
  begin(Role::target);
  log_in();
  wires.write_room = 0;
  events.control_hook = [&](const Recorder::Control&) { mover->send_control(iscsi::NopIn{}, {}); };
  const size_t pings = 3 * DataMover::control_queue_max;
  for (size_t i = 0; i < pings; ++i) wires.send(iscsi::NopOut{});

  run();
  EXPECT_LE(events.controls.size(), PduSender::crowded_pdus + SendBatch::pdus_max);
  EXPECT_FALSE(events.closed.has_value());

  // When it reads at last, nothing is lost.
  wires.write_room = std::numeric_limits<size_t>::max();
  run();
  EXPECT_EQ(events.controls.size(), pings);
  EXPECT_EQ(sent().size(), pings);
}

TEST_F(TcpMover, LargeAnswersToAPeerThatNeverReadsAreBoundedInBytes) {
  begin(Role::target);
  log_in();
  wires.write_room = 0;
  const auto echo = counting(60000);
  events.control_hook = [&](const Recorder::Control&) {
    mover->send_control(iscsi::NopIn{}, echo);
  };
  for (int i = 0; i < 200; ++i) wires.send(iscsi::NopOut{});
  run();
  EXPECT_LE(events.controls.size() * echo.size(),
            PduSender::crowded_bytes + SendBatch::payload_max_bytes + 2 * echo.size());
}

TEST_F(TcpMover, CommandsBehindManyBytesOfReadsWaitForTheNextTurn) {
  begin(Role::target);
  log_in();
  iscsi::ScsiCommand read;
  read.read = true;
  read.expected_data_transfer_length = 256 * 1024;
  for (read.itt = 0; read.itt < 8; ++read.itt) wires.send(read);

  ASSERT_TRUE(wires.poll());
  EXPECT_EQ(events.controls.size(),
            TcpDataMover::reads_begun_per_turn_bytes / read.expected_data_transfer_length);

  run();
  EXPECT_EQ(events.controls.size(), 8u);
}

TEST_F(TcpMover, NothingIsTakenInWhileThePeerTakesNoData) {
  begin(Role::target);
  log_in();
  const std::vector<std::byte> data(PduSender::crowded_put_bytes);
  wires.write_room = 1;
  // The first is in the batch that is being sent, the second waits.
  for (uint32_t itt : {1, 2}) {
    mover->put_data(command(itt), 0, data);
    run();
  }
  wires.send(iscsi::NopOut{});
  run();
  EXPECT_EQ(events.controls.size(), 2u);

  wires.write_room = std::numeric_limits<size_t>::max();
  run();
  EXPECT_EQ(events.controls.size(), 3u);
  EXPECT_EQ(events.transfers_done.size(), 2u);
}

}  // namespace
}  // namespace vjbod::transport
