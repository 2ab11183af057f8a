// SPDX-License-Identifier: Apache-2.0
// What is special to the TCP mover: every way in which bytes can come and go, and hostile peers.
#include "common/transport/tcp/tcp_data_mover.h"

#include <memory>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/unit/common/transport/tcp_mover_fixture.h"

namespace vjbod::transport {
namespace {

// --- bytes in any portions ---

TEST_F(TcpMover, PdusArriveHoweverTheBytesAreCut) {
  for (size_t portion : {1, 2, 47, 48, 49, 1000}) {
    wires = {};
    events.controls.clear();
    events.closed.reset();
    events.times_closed = 0;
    begin(Role::target);
    wires.read_max = portion;
    const auto text = counting(301);
    wires.send(iscsi::LoginRequest{}, text);
    wires.send(iscsi::NopOut{});
    wires.send(iscsi::TextRequest{}, text);

    run();

    ASSERT_EQ(events.controls.size(), 3u) << portion;
    EXPECT_EQ(events.controls[0].data, text);
    EXPECT_EQ(events.controls[2].data, text);
    mover->terminate({Errc::closed_locally, "Next."});
    run();
  }
}

TEST_F(TcpMover, DataInIsPlacedHoweverTheBytesAreCut) {
  const auto data = counting(100001);
  for (size_t portion : {13u, 1000u, 40000u, 1000000u}) {
    wires = {};
    events.controls.clear();
    events.closed.reset();
    events.times_closed = 0;
    begin(Role::initiator);
    auto parameters = large_segments();
    parameters.header_digest = parameters.data_digest = true;
    log_in(parameters);
    std::vector<std::byte> read(data.size());
    iscsi::ScsiCommand command;
    command.itt = 3;
    mover->begin_task(command, {}, read);
    run();
    wires.read_max = portion;
    iscsi::DataIn pdu;
    pdu.itt = 3;
    wires.send(pdu, ConstBytes(data).first(60000), true);
    pdu.data_sn = 1;
    pdu.buffer_offset = 60000;
    pdu.final = pdu.has_status = pdu.underflow = true;
    pdu.residual_count = 5;
    pdu.stat_sn = SerialNumber(77);
    wires.send(pdu, ConstBytes(data).subspan(60000), true);

    run();

    ASSERT_EQ(events.controls.size(), 1u) << portion;
    EXPECT_EQ(read, data);
    const auto& response = events.controls[0].as<iscsi::ScsiResponse>();
    EXPECT_EQ(response.stat_sn, SerialNumber(77));
    EXPECT_TRUE(response.underflow);
    EXPECT_EQ(response.residual_count, 5u);
    EXPECT_EQ(events.controls[0].data_in_bytes, data.size());
    const auto header = Wire::encode(pdu, ConstBytes(data).subspan(60000));
    EXPECT_TRUE(std::equal(header.begin(), header.begin() + iscsi::bhs_bytes,
                           events.controls[0].header_bytes.begin()));
    mover->terminate({Errc::closed_locally, "Next."});
    run();
  }
}

TEST_F(TcpMover, WhatIsSentDoesNotDependOnHowMuchAWriteTakes) {
  std::vector<std::byte> at_once;
  const auto data = counting(150001);
  for (size_t portion : {size_t{1} << 30, size_t{1}, size_t{7}, size_t{48}, size_t{4096}}) {
    wires = {};
    events.controls.clear();
    events.closed.reset();
    events.times_closed = 0;
    numbers = {};
    begin(Role::target);
    auto parameters = large_segments();
    parameters.header_digest = parameters.data_digest = true;
    log_in(parameters);
    wires.write_max = portion;
    const TaskHandle task = command(1, true);
    const TaskHandle small = command(2, true);

    mover->send_control(iscsi::TextResponse{}, ConstBytes(data).first(5001));
    mover->put_data(task, 0, data);
    respond(1);
    mover->put_data(small, 0, ConstBytes(data).first(4096));
    respond(2);
    run();

    if (at_once.empty()) at_once = wires.outgoing;
    EXPECT_TRUE(wires.outgoing == at_once) << portion;
    mover->terminate({Errc::closed_locally, "Next."});
    run();
  }
  EXPECT_EQ(Wire::decode(at_once, true).size(), 5u);  // Text, three Data-In, one more
}

// --- placement ---

TEST_F(TcpMover, LargeDataInIsReadStraightIntoTheLentMemory) {
  begin(Role::initiator);
  log_in();
  std::vector<std::byte> read(size_t{1} << 20);
  iscsi::ScsiCommand command;
  command.itt = 1;
  mover->begin_task(command, {}, read);
  run();
  const auto data = counting(256 * 1024);
  for (uint32_t i = 0; i < 4; ++i) {
    iscsi::DataIn pdu;
    pdu.itt = 1;
    pdu.data_sn = i;
    pdu.buffer_offset = i * 256 * 1024;
    wires.send(pdu, data);
  }

  run();

  size_t placed = 0;
  for (const Bytes part : wires.placed) {
    EXPECT_GE(part.data(), read.data());
    EXPECT_LE(part.data() + part.size(), read.data() + read.size());
    placed += part.size();
  }
  // The first segment came with the read that brought the header; of the others at most a small
  // read had to be copied.
  EXPECT_GE(placed, 3 * (256 * 1024 - TcpDataMover::small_read_bytes));
}

// --- R2T ---

TEST_F(TcpMover, AGetAsksInBurstsAndTheDataOutAnswersThem) {
  begin(Role::target);
  auto parameters = large_segments();
  parameters.max_burst_length = 8192;
  log_in(parameters);
  const TaskHandle task = command(9);
  const auto data = counting(20000);
  std::vector<std::byte> into(20000);
  numbers.stat_sn = SerialNumber(5);

  mover->get_data(task, 1000, into);
  run();
  for (size_t asked = 1; asked <= 3; ++asked) {
    const auto pdus = sent();
    ASSERT_EQ(pdus.size(), asked);
    const auto& r2t = pdus.back().as<iscsi::R2t>();
    EXPECT_EQ(r2t.itt, 9u);
    EXPECT_EQ(r2t.stat_sn, SerialNumber(5));
    EXPECT_EQ(r2t.r2t_sn, asked - 1);
    EXPECT_EQ(r2t.buffer_offset, 1000 + (asked - 1) * 8192);
    EXPECT_EQ(r2t.desired_data_transfer_length, asked < 3 ? 8192u : 20000u - 2 * 8192);
    iscsi::DataOut pdu;
    pdu.itt = 9;
    pdu.ttt = r2t.ttt;
    const ConstBytes piece =
        ConstBytes(data).subspan(r2t.buffer_offset - 1000, r2t.desired_data_transfer_length);
    pdu.buffer_offset = r2t.buffer_offset;
    wires.send(pdu, piece.first(1001));
    pdu.buffer_offset += 1001;
    pdu.data_sn = 1;
    pdu.final = true;
    wires.send(pdu, piece.subspan(1001));
    run();
  }

  EXPECT_EQ(events.transfers_done.size(), 1u);
  EXPECT_EQ(into, data);
  EXPECT_EQ(mover->data_sequence_count(task), 3u);
}

TEST_F(TcpMover, AnR2tIsAnsweredInSegmentsOfThePeersSize) {
  begin(Role::initiator);
  iscsi::NegotiatedParameters parameters;
  parameters.peer_max_recv_data_segment_length = 4096;
  parameters.first_burst_length = 2048;
  log_in(parameters);
  numbers.exp_stat_sn = SerialNumber(41);
  const auto data = counting(12000);
  iscsi::ScsiCommand command;
  command.itt = 3;
  command.write = true;
  mover->begin_task(command, data, {});
  iscsi::R2t r2t;
  r2t.itt = 3;
  r2t.ttt = 77;
  r2t.lun[1] = std::byte{4};
  r2t.buffer_offset = 2048;
  r2t.desired_data_transfer_length = 9952;
  run();
  wires.send(r2t);
  run();

  const auto pdus = sent();
  ASSERT_EQ(pdus.size(), 4u);
  EXPECT_TRUE(pdus[0].as<iscsi::ScsiCommand>().final);
  EXPECT_EQ(pdus[0].data.size(), 2048u);
  std::vector<std::byte> all(pdus[0].data);
  for (uint32_t i = 0; i < 3; ++i) {
    const auto& pdu = pdus[i + 1].as<iscsi::DataOut>();
    EXPECT_EQ(pdu.ttt, 77u);
    EXPECT_EQ(pdu.lun, r2t.lun);
    EXPECT_EQ(pdu.exp_stat_sn, SerialNumber(41));
    EXPECT_EQ(pdu.data_sn, i);
    EXPECT_EQ(pdu.buffer_offset, all.size());
    EXPECT_EQ(pdu.final, i == 2);
    all.insert(all.end(), pdus[i + 1].data.begin(), pdus[i + 1].data.end());
  }
  EXPECT_EQ(all, data);
}

// --- peers that break the rules ---

TEST_F(TcpMover, APduOfTheWrongDirectionEndsTheConnection) {
  begin(Role::target);
  wires.send(iscsi::NopIn{});
  expect_closed(Errc::wrong_direction);
}

TEST_F(TcpMover, AnUnknownOpcodeInFullFeaturePhaseIsDroppedAndTold) {
  begin(Role::target);
  log_in();
  auto bytes = Wire::encode(iscsi::TextRequest{}, counting(301));
  bytes[0] = std::byte{0x1f};
  wires.send(bytes);
  wires.send(iscsi::NopOut{});
  run();
  EXPECT_FALSE(events.closed);
  ASSERT_EQ(events.unknown.size(), 1u);
  EXPECT_EQ(events.unknown[0], std::vector(bytes.begin(), bytes.begin() + iscsi::bhs_bytes));
  ASSERT_EQ(events.controls.size(), 1u) << "what follows is read as ever";
  EXPECT_TRUE(std::holds_alternative<iscsi::NopOut>(events.controls[0].pdu));
}

TEST_F(TcpMover, AnUnknownOpcodeEndsTheConnectionInTheLoginPhase) {
  begin(Role::target);
  auto bytes = Wire::encode(iscsi::NopOut{});
  bytes[0] = std::byte{0x1f};
  wires.send(bytes);
  expect_closed(Errc::unknown_opcode);
}

TEST_F(TcpMover, MoreLoginDataThanAllowedEndsTheConnection) {
  begin(Role::target);
  wires.send(iscsi::LoginRequest{}, counting(8193));
  expect_closed(Errc::data_too_long);
}

TEST_F(TcpMover, AWrongHeaderDigestEndsTheConnection) {
  begin(Role::target);
  auto parameters = large_segments();
  parameters.header_digest = parameters.data_digest = true;
  log_in(parameters);
  auto bytes = Wire::encode(iscsi::NopOut{}, counting(10), true);
  bytes[20] ^= std::byte{1};
  wires.send(bytes);
  expect_closed(Errc::header_digest);
}

TEST_F(TcpMover, AWrongDataDigestEndsTheConnection) {
  begin(Role::target);
  auto parameters = large_segments();
  parameters.header_digest = parameters.data_digest = true;
  log_in(parameters);
  auto bytes = Wire::encode(iscsi::NopOut{}, counting(10), true);
  bytes[55] ^= std::byte{1};
  wires.send(bytes);
  expect_closed(Errc::data_digest);
}

TEST_F(TcpMover, UnsolicitedDataOutEndsTheConnection) {
  begin(Role::target);
  log_in();
  iscsi::DataOut pdu;
  pdu.itt = 1;
  wires.send(pdu, counting(100));
  expect_closed(Errc::protocol);
}

TEST_F(TcpMover, DataInForNoTaskEndsTheConnection) {
  begin(Role::initiator);
  log_in();
  wires.send(iscsi::DataIn{}, counting(100));
  expect_closed(Errc::protocol);
}

TEST_F(TcpMover, AResponseForNoTaskEndsTheConnection) {
  begin(Role::initiator);
  log_in();
  wires.send(iscsi::ScsiResponse{});
  expect_closed(Errc::protocol);
}

TEST_F(TcpMover, AResponseToACommandThatWasNotSentEndsTheConnection) {
  begin(Role::initiator);
  log_in();
  wires.write_room = 0;
  mover->send_control(iscsi::NopOut{}, {});
  run();  // its batch blocks, so that the command stays in the queue
  iscsi::ScsiCommand command;
  command.itt = 3;
  auto data = std::make_unique<std::vector<std::byte>>(4096);
  mover->begin_task(command, *data, {});
  iscsi::ScsiResponse response;
  response.itt = 3;
  wires.send(response);
  expect_closed(Errc::protocol);
}

TEST_F(TcpMover, StatusInADataInThatIsNotTheLastEndsTheConnection) {
  begin(Role::initiator);
  log_in();
  std::vector<std::byte> read(100);
  iscsi::ScsiCommand command;
  command.itt = 3;
  mover->begin_task(command, {}, read);
  run();
  iscsi::DataIn pdu;
  pdu.itt = 3;
  pdu.has_status = true;
  wires.send(pdu, counting(100));
  expect_closed(Errc::bad_field);
}

TEST_F(TcpMover, MoreCommandsThanATargetKeepsEndTheConnection) {
  begin(Role::target);
  log_in();
  iscsi::ScsiCommand pdu;
  pdu.immediate = true;
  for (uint32_t i = 0; i <= TargetTransferTable::tasks_max; ++i) {
    pdu.itt = i;
    wires.send(pdu);
  }
  expect_closed(Errc::protocol);
  EXPECT_EQ(events.controls.size(), TargetTransferTable::tasks_max);
}

// --- losses ---

TEST_F(TcpMover, ALossAtAnyByteOfDataOutIsToldOnceAndTheMemoryIsLeftAlone) {
  iscsi::DataOut pdu;
  pdu.itt = 9;
  pdu.final = true;
  for (size_t cut = 0; cut < 48 + 1000; cut += 37) {
    for (bool reset : {false, true}) {
      wires = {};
      events = {};
      begin(Role::target);
      log_in();
      const TaskHandle task = command(9);
      auto into = std::make_unique<std::vector<std::byte>>(1000);
      mover->get_data(task, 0, *into);
      run();
      pdu.ttt = sent().back().as<iscsi::R2t>().ttt;
      events.closed_hook = [&] { into.reset(); };  // a sanitizer build sees any later touch

      wires.send(ConstBytes(Wire::encode(pdu, counting(1000))).first(cut));
      wires.read_error = reset ? ECONNRESET : 0;
      wires.ended = !reset;
      run();

      ASSERT_EQ(events.times_closed, 1) << cut;
      EXPECT_EQ(events.closed->code, Errc::connection_lost);
      EXPECT_TRUE(events.transfers_done.empty());
      run();
    }
  }
}

TEST_F(TcpMover, ALossAtAnyByteOfDataInIsToldOnce) {
  const auto data = counting(20000);
  for (size_t room = 0; room < 20000; room += 1999) {
    wires = {};
    events = {};
    begin(Role::target);
    log_in();
    const TaskHandle task = command(9);
    wires.write_room = room;
    auto lent = std::make_unique<std::vector<std::byte>>(data);
    events.closed_hook = [&] { lent.reset(); };
    mover->put_data(task, 0, *lent);
    run();
    wires.write_error = EPIPE;
    run();
    ASSERT_EQ(events.times_closed, 1) << room;
    EXPECT_EQ(events.closed->code, Errc::connection_lost);
  }
}

TEST_F(TcpMover, WhatThePeerSaidBeforeItWentIsStillHeard) {
  begin(Role::initiator);
  iscsi::LoginResponse refused;
  refused.status_class = 2;
  wires.send(refused);
  wires.write_error = EPIPE;
  wires.ended = true;
  wires.waits_to_read = false;  // the write comes first
  mover->send_control(iscsi::LoginRequest{}, {});
  reactor.run_until_idle();

  ASSERT_EQ(events.controls.size(), 1u);
  EXPECT_EQ(events.controls[0].as<iscsi::LoginResponse>().status_class, 2);
  EXPECT_EQ(events.times_closed, 1);
}

TEST_F(TcpMover, AFailedWriteWithNothingToReadEndsTheConnection) {
  begin(Role::initiator);
  wires.write_error = EPIPE;
  mover->send_control(iscsi::LoginRequest{}, {});
  expect_closed(Errc::connection_lost);
}

// --- the end ---

TEST_F(TcpMover, TerminateWithNothingToSendClosesAtOnce) {
  begin(Role::target);
  mover->terminate({Errc::timed_out, "No life."});
  run();
  EXPECT_EQ(events.times_closed, 1);
}

TEST_F(TcpMover, TerminateSendsWhatWasQueuedAndWaitsForThePeerToClose) {
  begin(Role::target);
  mover->send_control(iscsi::LoginResponse{}, {});
  mover->terminate({Errc::authentication, "Refused."});
  wires.send(iscsi::LoginRequest{});  // unread bytes at a close would make the kernel reset
  run();
  EXPECT_EQ(sent().size(), 1u);
  EXPECT_TRUE(wires.sending_shut_down);
  EXPECT_TRUE(wires.incoming.empty());
  EXPECT_FALSE(events.closed.has_value());

  wires.ended = true;
  run();
  ASSERT_TRUE(events.closed.has_value());
  EXPECT_EQ(events.closed->code, Errc::authentication);
  EXPECT_TRUE(events.controls.empty());
}

TEST_F(TcpMover, TerminateWaitsForTheFlushTimeAndNotLonger) {
  begin(Role::target);
  wires.write_room = 10;
  mover->send_control(iscsi::LoginResponse{}, {});
  mover->terminate({Errc::authentication, "Refused."});
  run();
  reactor.advance(TcpDataMover::flush_time_max - std::chrono::milliseconds(1));
  EXPECT_FALSE(events.closed.has_value());
  reactor.advance(std::chrono::milliseconds(1));
  EXPECT_TRUE(events.closed.has_value());
  EXPECT_TRUE(wires.closed);
}

TEST_F(TcpMover, APeerThatNeverClosesIsWaitedForNoLongerThanTheFlushTime) {
  begin(Role::target);
  mover->send_control(iscsi::LoginResponse{}, {});
  mover->terminate({Errc::authentication, "Refused."});
  run();
  EXPECT_FALSE(events.closed.has_value());
  reactor.advance(TcpDataMover::flush_time_max);
  EXPECT_TRUE(events.closed.has_value());
}

TEST_F(TcpMover, TerminateSendsNoResponseWhoseDataItDoesNotSend) {
  begin(Role::target);
  log_in();
  const auto data = counting(100000);
  const TaskHandle task = command(1);
  wires.write_room = 100;
  mover->send_control(iscsi::NopIn{}, counting(1000));
  run();  // blocks within the NOP-In
  mover->put_data(task, 0, data);
  iscsi::ScsiResponse response;
  response.itt = 1;
  response.status = 2;  // does not ride on the data
  mover->send_control(response, {});
  mover->send_control(iscsi::LogoutResponse{}, {});
  mover->terminate({Errc::closed_locally, "Logout."});
  wires.write_room = std::numeric_limits<size_t>::max();
  run();

  const auto pdus = sent();
  ASSERT_EQ(pdus.size(), 2u);
  EXPECT_TRUE(pdus[0].is<iscsi::NopIn>());
  EXPECT_TRUE(pdus[1].is<iscsi::LogoutResponse>());
}

TEST_F(TcpMover, TheFinalLoginResponseGoesOutWithoutDigests) {
  begin(Role::target);
  mover->send_control(iscsi::LoginResponse{}, counting(20));
  auto parameters = large_segments();
  parameters.header_digest = parameters.data_digest = true;
  log_in(parameters);
  mover->send_control(iscsi::NopIn{}, counting(20));
  run();
  const auto login = Wire::encode(iscsi::LoginResponse{}, counting(20));
  ASSERT_GT(wires.outgoing.size(), login.size());
  EXPECT_TRUE(std::equal(login.begin(), login.end(), wires.outgoing.begin()));
  const auto pdus = Wire::decode(ConstBytes(wires.outgoing).subspan(login.size()), true);
  ASSERT_EQ(pdus.size(), 1u);
}

TEST_F(TcpMover, PdusBehindTheLastOfTheLoginAreReadByTheNewRules) {
  begin(Role::initiator);
  events.control_hook = [&](const Recorder::Control& control) {
    if (!std::holds_alternative<iscsi::LoginResponse>(control.pdu)) return;
    auto parameters = large_segments();
    parameters.header_digest = parameters.data_digest = true;
    log_in(parameters);
  };
  wires.send(iscsi::LoginResponse{}, counting(20));
  wires.send(iscsi::NopIn{}, counting(20), true);
  run();
  ASSERT_EQ(events.controls.size(), 2u);
  EXPECT_EQ(events.controls[1].data, counting(20));
}

TEST_F(TcpMover, ACancelledPutThatIsHalfSentKeepsTheFraming) {
  begin(Role::target);
  log_in();
  const TaskHandle task = command(1);
  const auto data = counting(200000);
  auto lent = std::make_unique<std::vector<std::byte>>(data);
  wires.write_room = 30000;
  mover->put_data(task, 0, *lent);
  run();
  mover->cancel_transfer(task);
  run();
  EXPECT_EQ(events.transfers_done.size(), 1u);
  lent.reset();
  mover->end_task(task);
  mover->send_control(iscsi::NopIn{}, {});
  wires.write_room = std::numeric_limits<size_t>::max();
  run();

  const auto pdus = sent();
  ASSERT_GE(pdus.size(), 2u);
  EXPECT_TRUE(pdus.back().is<iscsi::NopIn>());
  EXPECT_TRUE(std::equal(pdus[0].data.begin(), pdus[0].data.end(), data.begin()));
}

}  // namespace
}  // namespace vjbod::transport
