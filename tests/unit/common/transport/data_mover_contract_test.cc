// SPDX-License-Identifier: Apache-2.0
// The contract of common/transport/data_mover.h, each line of it, over every mover there is.
#include <algorithm>
#include <variant>

#include <gtest/gtest.h>

#include "common/transport/data_mover.h"
#include "tests/unit/common/transport/mover_worlds.h"
// Another program may run the suite over worlds of its own: ContractWorlds of this header.
#ifdef VJBOD_MOVER_WORLDS_HEADER
#include VJBOD_MOVER_WORLDS_HEADER
#endif

namespace vjbod::transport {
namespace {

using iscsi::Errc;

std::vector<std::byte> pattern(size_t size, uint8_t seed) {
  std::vector<std::byte> bytes(size);
  uint32_t x = seed * 2654435761u + 1;
  for (std::byte& b : bytes) {
    x = x * 1664525 + 1013904223;
    b = static_cast<std::byte>(x >> 24);
  }
  return bytes;
}

template <typename World>
class DataMoverContract : public ::testing::Test {
 protected:
  void SetUp() override {
    world.initiator()->start(initiator_events);
    world.target()->start(target_events);
  }
  void TearDown() override {
    for (Recorder* events : {&initiator_events, &target_events}) {
      events->control_hook = nullptr;
      events->transfer_hook = nullptr;
    }
    if (world.initiator()) world.initiator()->terminate(goodbye());
    if (world.target()) world.target()->terminate(goodbye());
    EXPECT_TRUE(world.run_until(
        [&] { return initiator_events.times_closed == 1 && target_events.times_closed == 1; }));
  }
  static Error goodbye() { return {Errc::closed_locally, "The test is over."}; }

  void log_in(iscsi::NegotiatedParameters parameters = {}) {
    parameters.our_max_recv_data_segment_length = 64 * 1024;
    parameters.peer_max_recv_data_segment_length = 64 * 1024;
    World::adjust(parameters);
    world.initiator()->enable_full_feature(parameters, initiator_numbers);
    world.target()->enable_full_feature(parameters, target_numbers);
  }
  // A SCSI Command at the target, with its handle there.
  Recorder::Control command(uint32_t itt, ConstBytes write, Bytes read) {
    const size_t before = target_events.controls.size();
    iscsi::ScsiCommand pdu;
    pdu.itt = itt;
    pdu.read = !read.empty();
    pdu.write = !write.empty();
    pdu.expected_data_transfer_length = static_cast<uint32_t>(read.size() + write.size());
    downcall(initiator_events, [&] { world.initiator()->begin_task(pdu, write, read); });
    EXPECT_TRUE(world.run_until([&] { return target_events.controls.size() > before; }));
    return target_events.controls.back();
  }
  void respond(uint32_t itt) {
    iscsi::ScsiResponse response;
    response.itt = itt;
    response.stat_sn = target_numbers.stat_sn;
    ++target_numbers.stat_sn.value;
    downcall(target_events, [&] { world.target()->send_control(response, {}); });
  }
  // The response as the initiator's session sees it.
  Recorder::Control await_response() {
    const size_t before = initiator_events.controls.size();
    EXPECT_TRUE(world.run_until([&] { return initiator_events.controls.size() > before; }));
    return initiator_events.controls.back();
  }
  void put(TaskHandle task, uint64_t offset, ConstBytes data) {
    downcall(target_events, [&] { world.target()->put_data(task, offset, data); });
  }
  void get(TaskHandle task, uint64_t offset, Bytes into) {
    downcall(target_events, [&] { world.target()->get_data(task, offset, into); });
  }
  bool await_transfers(size_t count) {
    return world.run_until([&] { return target_events.transfers_done.size() >= count; });
  }
  template <typename F>
  void downcall(Recorder& events, F&& call) {
    events.in_downcall = true;
    call();
    events.in_downcall = false;
  }

  World world;
  Recorder initiator_events, target_events;
  SequenceNumbers initiator_numbers, target_numbers;
};

#ifdef VJBOD_MOVER_WORLDS_HEADER
using Worlds = ContractWorlds;
#else
using Worlds =
    ::testing::Types<MemoryWorld<DataPlacement::early>, MemoryWorld<DataPlacement::late>,
                     TcpWorld<TcpFlavour::plain>, TcpWorld<TcpFlavour::digests>,
                     TcpWorld<TcpFlavour::small_segments>, IserWorld<IserFlavour::windows>,
                     IserWorld<IserFlavour::regions>, IserWorld<IserFlavour::small_messages>>;
#endif
TYPED_TEST_SUITE(DataMoverContract, Worlds);

// --- 2. control PDUs ---

TYPED_TEST(DataMoverContract, ControlPdusArriveTypedInOrderWithTheirData) {
  iscsi::LoginRequest login;
  login.itt = 7;
  const auto text = pattern(300, 1);
  iscsi::NopOut ping;
  ping.itt = 8;

  this->downcall(this->initiator_events, [&] {
    this->world.initiator()->send_control(login, text);
    this->world.initiator()->send_control(ping, {});
  });

  auto& received = this->target_events.controls;
  ASSERT_TRUE(this->world.run_until([&] { return received.size() == 2; }));
  EXPECT_EQ(received[0].template as<iscsi::LoginRequest>().itt, 7u);
  EXPECT_EQ(received[0].data, text);
  EXPECT_EQ(received[1].template as<iscsi::NopOut>().itt, 8u);
  EXPECT_TRUE(received[1].data.empty());
  EXPECT_EQ(received[0].header_bytes.size(), iscsi::bhs_bytes);
  EXPECT_EQ(std::to_integer<int>(received[0].header_bytes[0]) & 0x3f, 0x03);
}

TYPED_TEST(DataMoverContract, TheDataOfSendControlIsCopied) {
  auto text = pattern(300, 1);
  const auto sent = text;
  this->world.initiator()->send_control(iscsi::LoginRequest{}, text);
  std::fill(text.begin(), text.end(), std::byte{0});

  auto& received = this->target_events.controls;
  ASSERT_TRUE(this->world.run_until([&] { return received.size() == 1; }));
  EXPECT_EQ(received[0].data, sent);
}

TYPED_TEST(DataMoverContract, AnswersSentFromInsideAnUpcallArrive) {
  this->target_events.control_hook = [&](const Recorder::Control& control) {
    iscsi::LoginResponse response;
    response.itt = control.template as<iscsi::LoginRequest>().itt;
    this->downcall(this->target_events, [&] { this->world.target()->send_control(response, {}); });
  };
  iscsi::LoginRequest login;
  login.itt = 99;
  this->world.initiator()->send_control(login, {});

  const auto answer = this->await_response();
  EXPECT_EQ(answer.template as<iscsi::LoginResponse>().itt, 99u);
}

TYPED_TEST(DataMoverContract, ReceivedBytesAreToldAsLife) {
  this->world.initiator()->send_control(iscsi::LoginRequest{}, {});
  ASSERT_TRUE(this->world.run_until([&] { return !this->target_events.controls.empty(); }));
  this->world.settle();
  EXPECT_GE(this->target_events.alive, 1);
  EXPECT_EQ(this->initiator_events.alive, 0);
}

TYPED_TEST(DataMoverContract, APduLargerThanThePeerTakesIsNotSentButClosesTheConnection) {
  this->world.initiator()->send_control(iscsi::LoginRequest{}, pattern(8193, 1));
  ASSERT_TRUE(this->world.run_until([&] { return this->initiator_events.closed.has_value(); }));
  EXPECT_EQ(this->initiator_events.closed->code, Errc::data_too_long);
  this->world.settle();
  EXPECT_TRUE(this->target_events.controls.empty());
}

// --- 3. data ---

TYPED_TEST(DataMoverContract, APutArrivesInTheReadMemoryBeforeTheResponse) {
  this->log_in();
  for (size_t size : {size_t{1}, size_t{512}, size_t{4096}, size_t{70000}, size_t{1} << 20}) {
    const auto data = pattern(size, 3);
    std::vector<std::byte> read(size);
    const auto task = this->command(5, {}, read).task;

    this->put(task, 0, data);
    this->respond(5);

    const auto response = this->await_response();
    EXPECT_EQ(response.template as<iscsi::ScsiResponse>().itt, 5u);
    EXPECT_EQ(response.data_in_bytes, size);
    EXPECT_EQ(read, data);
    ASSERT_TRUE(this->world.run_until([&] { return !this->target_events.transfers_done.empty(); }));
    EXPECT_EQ(this->target_events.transfers_done, std::vector<TaskHandle>{task});
    this->target_events.transfers_done.clear();
    this->world.target()->end_task(task);
  }
}

TYPED_TEST(DataMoverContract, APutInPiecesFillsTheReadMemory) {
  this->log_in();
  const auto data = pattern(300000, 4);
  std::vector<std::byte> read(data.size());
  const auto task = this->command(5, {}, read).task;

  const size_t piece = 100000;
  for (size_t i = 0; i < 3; ++i) {
    this->put(task, i * piece, ConstBytes(data).subspan(i * piece, piece));
    ASSERT_TRUE(this->await_transfers(i + 1));
  }
  this->respond(5);

  EXPECT_EQ(this->await_response().data_in_bytes, data.size());
  EXPECT_EQ(read, data);
}

TYPED_TEST(DataMoverContract, AfterTransferDoneThePutMemoryMayBeReused) {
  this->log_in();
  auto data = pattern(200000, 4);
  const auto sent = data;
  std::vector<std::byte> read(data.size());
  const auto task = this->command(5, {}, read).task;
  this->target_events.transfer_hook = [&](TaskHandle) {
    std::fill(data.begin(), data.end(), std::byte{0xee});
    this->respond(5);
  };

  this->put(task, 0, data);

  this->await_response();
  EXPECT_EQ(read, sent);
}

TYPED_TEST(DataMoverContract, ReadsAreNotMixed) {
  this->log_in();
  constexpr size_t count = 32;
  std::vector<std::vector<std::byte>> data, read(count);
  std::vector<TaskHandle> tasks;
  for (uint32_t i = 0; i < count; ++i) {
    data.push_back(pattern(4096 * (i % 5 + 1), static_cast<uint8_t>(i)));
    read[i].resize(data[i].size());
    tasks.push_back(this->command(i, {}, read[i]).task);
  }
  for (uint32_t i = count; i-- > 0;) {
    this->put(tasks[i], 0, data[i]);
    this->respond(i);
  }
  ASSERT_TRUE(
      this->world.run_until([&] { return this->initiator_events.controls.size() == count; }));
  EXPECT_EQ(read, data);
}

TYPED_TEST(DataMoverContract, AGetBringsExactlyTheBytesAskedFor) {
  iscsi::NegotiatedParameters parameters;
  parameters.immediate_data = false;
  this->log_in(parameters);
  const auto data = pattern(size_t{1} << 20, 9);
  const auto received = this->command(6, data, {});
  EXPECT_TRUE(received.data.empty());
  std::vector<std::byte> into(300001);

  this->get(received.task, 12345, into);
  ASSERT_TRUE(this->await_transfers(1));

  EXPECT_TRUE(std::equal(into.begin(), into.end(), data.begin() + 12345));
  this->respond(6);
  const uint64_t told = this->await_response().data_out_bytes;
  EXPECT_EQ(told, TypeParam::tells_what_was_fetched ? into.size() : data.size());
  this->world.target()->end_task(received.task);
}

TYPED_TEST(DataMoverContract, WritesUpToTheFirstBurstComeWithTheCommand) {
  iscsi::NegotiatedParameters parameters;
  parameters.first_burst_length = 8192;
  this->log_in(parameters);
  const auto data = pattern(20000, 9);
  const auto received = this->command(6, data, {});
  ASSERT_EQ(received.data.size(), 8192u);
  std::vector<std::byte> all(received.data);
  all.resize(data.size());

  this->get(received.task, 8192, Bytes(all).subspan(8192));
  ASSERT_TRUE(this->await_transfers(1));
  this->respond(6);

  EXPECT_EQ(all, data);
  EXPECT_EQ(this->await_response().data_out_bytes, data.size());
}

TYPED_TEST(DataMoverContract, AGetOfNothingIsDoneAtOnce) {
  this->log_in();
  const auto task = this->command(6, pattern(10, 1), {}).task;
  this->get(task, 0, {});
  EXPECT_TRUE(this->await_transfers(1));
}

TYPED_TEST(DataMoverContract, GetsOfManyTasksAreNotMixed) {
  iscsi::NegotiatedParameters parameters;
  parameters.immediate_data = false;
  this->log_in(parameters);
  constexpr size_t count = 16;
  std::vector<std::vector<std::byte>> data, into(count);
  std::vector<TaskHandle> tasks;
  for (uint32_t i = 0; i < count; ++i) data.push_back(pattern(70000 + i, static_cast<uint8_t>(i)));
  for (uint32_t i = 0; i < count; ++i) {
    into[i].resize(data[i].size());
    tasks.push_back(this->command(i, data[i], {}).task);
  }
  for (uint32_t i = count; i-- > 0;) this->get(tasks[i], 0, into[i]);
  ASSERT_TRUE(this->await_transfers(count));
  EXPECT_EQ(into, data);
}

// --- 5. lent memory ---

TYPED_TEST(DataMoverContract, AnIttMayBeUsedAgainFromInsideTheUpcallOfItsResponse) {
  this->log_in();
  std::vector<std::byte> read(4096);
  this->command(5, {}, read);
  this->initiator_events.control_hook = [&](const Recorder::Control&) {
    iscsi::ScsiCommand again;
    again.itt = 5;
    this->downcall(this->initiator_events,
                   [&] { this->world.initiator()->begin_task(again, {}, read); });
  };
  this->respond(5);
  EXPECT_TRUE(this->world.run_until([&] { return this->target_events.controls.size() == 2; }));
}

TYPED_TEST(DataMoverContract, AResponseBeforeTheDataWasFetchedFreesTheWriteMemory) {
  iscsi::NegotiatedParameters parameters;
  parameters.immediate_data = false;
  this->log_in(parameters);
  auto data = std::make_unique<std::vector<std::byte>>(pattern(size_t{1} << 20, 7));
  const auto task = this->command(5, *data, {}).task;
  std::vector<std::byte> into(data->size());

  this->get(task, 0, into);
  this->world.target()->cancel_transfer(task);
  this->respond(5);
  this->await_response();
  data.reset();  // a sanitizer build sees any later touch

  this->world.target()->send_control(iscsi::NopIn{}, {});
  const auto next = this->await_response();
  EXPECT_TRUE(std::holds_alternative<iscsi::NopIn>(next.pdu));
  EXPECT_FALSE(this->initiator_events.closed.has_value());
}

TYPED_TEST(DataMoverContract, ACancelledGetIsDoneWithoutThePeerAndItsMemoryIsLeftAlone) {
  iscsi::NegotiatedParameters parameters;
  parameters.immediate_data = false;
  this->log_in(parameters);
  const auto data = pattern(size_t{1} << 20, 7);
  const auto task = this->command(5, data, {}).task;
  std::vector<std::byte> into(data.size());
  this->world.stall_initiator();

  this->get(task, 0, into);
  this->downcall(this->target_events, [&] { this->world.target()->cancel_transfer(task); });

  ASSERT_TRUE(this->await_transfers(1));
  const auto as_left = into;
  this->world.target()->end_task(task);
  this->world.settle();
  EXPECT_EQ(into, as_left);
  EXPECT_EQ(this->target_events.transfers_done.size(), 1u);
}

TYPED_TEST(DataMoverContract, ACancelledPutIsDoneWithoutThePeer) {
  this->log_in();
  std::vector<std::byte> read(size_t{4} << 20);
  const auto task = this->command(5, {}, read).task;
  this->world.stall_initiator();
  auto data = std::make_unique<std::vector<std::byte>>(pattern(read.size(), 7));

  this->put(task, 0, *data);
  this->world.settle();
  this->downcall(this->target_events, [&] { this->world.target()->cancel_transfer(task); });

  ASSERT_TRUE(this->await_transfers(1));
  data.reset();  // a sanitizer build sees any later touch
  this->world.target()->end_task(task);
  this->world.settle();
}

TYPED_TEST(DataMoverContract, CancellingWhenNothingIsUnderWayDoesNothing) {
  this->log_in();
  std::vector<std::byte> read(100);
  const auto task = this->command(5, {}, read).task;
  this->world.target()->cancel_transfer(task);
  this->world.settle();
  EXPECT_TRUE(this->target_events.transfers_done.empty());
  this->world.target()->end_task(task);
}

TYPED_TEST(DataMoverContract, DataThatStillComesForAnEndedTaskIsDropped) {
  iscsi::NegotiatedParameters parameters;
  parameters.immediate_data = false;
  this->log_in(parameters);
  const auto data = pattern(200000, 7);
  const auto task = this->command(5, data, {}).task;
  std::vector<std::byte> into(data.size());
  this->get(task, 0, into);
  this->world.target()->cancel_transfer(task);
  ASSERT_TRUE(this->await_transfers(1));
  this->world.target()->end_task(task);

  // The connection goes on, and other tasks are not disturbed.
  const auto second = this->command(6, data, {}).task;
  this->get(second, 0, into);
  ASSERT_TRUE(this->await_transfers(2));
  EXPECT_EQ(into, data);
}

// --- 6. the end ---

TYPED_TEST(DataMoverContract, TerminateIsToldOnceAtBothEnds) {
  this->downcall(this->initiator_events, [&] {
    this->world.initiator()->terminate({Errc::timed_out, "No life."});
    this->world.initiator()->terminate({Errc::closed_locally, "Again."});
  });
  ASSERT_TRUE(this->world.run_until([&] {
    return this->initiator_events.closed.has_value() && this->target_events.closed.has_value();
  }));
  this->world.settle();
  EXPECT_EQ(this->initiator_events.closed->code, Errc::timed_out);
  EXPECT_EQ(this->target_events.closed->code, Errc::connection_lost);
  EXPECT_FALSE(this->target_events.closed->text.empty());
}

TYPED_TEST(DataMoverContract, AfterALostConnectionBothEndsAreTold) {
  this->world.cut();
  ASSERT_TRUE(this->world.run_until([&] {
    return this->initiator_events.closed.has_value() && this->target_events.closed.has_value();
  }));
  EXPECT_EQ(this->initiator_events.closed->code, Errc::connection_lost);
  EXPECT_EQ(this->target_events.closed->code, Errc::connection_lost);
}

TYPED_TEST(DataMoverContract, WhatWasQueuedBeforeTerminateStillArrives) {
  iscsi::LoginResponse refused;
  refused.status_class = 2;
  this->downcall(this->target_events, [&] {
    this->world.target()->send_control(refused, pattern(8000, 1));
    this->world.target()->terminate({Errc::authentication, "Refused."});
  });
  const auto answer = this->await_response();
  EXPECT_EQ(answer.template as<iscsi::LoginResponse>().status_class, 2);
  EXPECT_EQ(answer.data.size(), 8000u);
  ASSERT_TRUE(this->world.run_until([&] { return this->initiator_events.closed.has_value(); }));
}

TYPED_TEST(DataMoverContract, TerminateDoesNotWaitLongForAPeerThatTakesNothing) {
  this->log_in();
  this->world.stall_initiator();
  for (int i = 0; i < 20; ++i)
    this->world.target()->send_control(iscsi::NopIn{}, pattern(60000, 1));
  this->world.target()->terminate({Errc::timed_out, "No life."});
  EXPECT_TRUE(this->world.run_until([&] { return this->target_events.closed.has_value(); }));
}

TYPED_TEST(DataMoverContract, AMoverMayBeDestroyedFromInsideOnClosed) {
  this->initiator_events.closed_hook = [&] { this->world.initiator().reset(); };
  this->world.initiator()->terminate({Errc::closed_locally, "Enough."});
  ASSERT_TRUE(this->world.run_until([&] { return this->initiator_events.closed.has_value(); }));
  EXPECT_EQ(this->world.initiator(), nullptr);
  EXPECT_TRUE(this->world.run_until([&] { return this->target_events.closed.has_value(); }));
}

TYPED_TEST(DataMoverContract, TerminateFromInsideAnUpcallStopsTheUpcalls) {
  this->target_events.control_hook = [&](const Recorder::Control&) {
    this->downcall(this->target_events, [&] {
      this->world.target()->terminate({Errc::protocol, "Not that."});
    });
  };
  for (int i = 0; i < 3; ++i) this->world.initiator()->send_control(iscsi::LoginRequest{}, {});
  ASSERT_TRUE(this->world.run_until([&] { return this->target_events.closed.has_value(); }));
  EXPECT_EQ(this->target_events.controls.size(), 1u);
  EXPECT_EQ(this->target_events.closed->code, Errc::protocol);
}

TYPED_TEST(DataMoverContract, CallsBetweenTheLossAndOnClosedDoNothing) {
  this->log_in();
  std::vector<std::byte> memory(4096);
  const auto task = this->command(5, {}, memory).task;
  this->world.target()->terminate({Errc::closed_locally, "Enough."});

  this->put(task, 0, memory);
  this->respond(5);
  this->world.target()->cancel_transfer(task);
  this->world.target()->end_task(task);
  this->world.initiator()->terminate({Errc::closed_locally, "Enough."});
  iscsi::ScsiCommand late;
  late.itt = 6;
  EXPECT_EQ(this->world.initiator()->begin_task(late, {}, memory), no_task);
  this->world.settle();
  EXPECT_TRUE(this->target_events.transfers_done.empty());
}

TYPED_TEST(DataMoverContract, AfterOnClosedNoLentByteIsTouchedAtTheTarget) {
  iscsi::NegotiatedParameters parameters;
  parameters.immediate_data = false;
  this->log_in(parameters);
  std::vector<std::byte> read(size_t{1} << 20);
  const auto write = pattern(size_t{1} << 20, 2);
  const auto get_task = this->command(1, write, {}).task;
  const auto put_task = this->command(2, {}, read).task;
  auto into = std::make_unique<std::vector<std::byte>>(write.size());
  auto from = std::make_unique<std::vector<std::byte>>(read.size());
  std::vector<std::byte> at_close;
  this->target_events.closed_hook = [&] {
    at_close = *into;
    from.reset();
  };

  this->get(get_task, 0, *into);
  this->put(put_task, 0, *from);
  this->world.target()->terminate({Errc::closed_locally, "Enough."});

  ASSERT_TRUE(this->world.run_until([&] { return this->target_events.closed.has_value(); }));
  this->world.settle();
  EXPECT_EQ(*into, at_close);
}

TYPED_TEST(DataMoverContract, AfterOnClosedNoLentByteIsTouchedAtTheInitiator) {
  iscsi::NegotiatedParameters parameters;
  parameters.immediate_data = false;
  this->log_in(parameters);
  auto read = std::make_unique<std::vector<std::byte>>(size_t{1} << 20);
  auto write = std::make_unique<std::vector<std::byte>>(size_t{1} << 20);
  const auto get_task = this->command(1, *write, {}).task;
  const auto put_task = this->command(2, {}, *read).task;
  std::vector<std::byte> into(write->size()), from = pattern(read->size(), 5), at_close;
  this->initiator_events.closed_hook = [&] {
    write.reset();
    at_close = *read;
  };

  this->put(put_task, 0, from);
  this->get(get_task, 0, into);
  this->world.initiator()->terminate({Errc::closed_locally, "Enough."});

  ASSERT_TRUE(this->world.run_until([&] { return this->initiator_events.closed.has_value(); }));
  this->world.settle();
  EXPECT_EQ(*read, at_close);
}

// --- 7. bounds ---

TYPED_TEST(DataMoverContract, MoreControlPdusThanTheQueueHoldsIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        this->world.stall_initiator();
        for (size_t i = 0; i <= DataMover::control_queue_max + 100000; ++i)
          this->world.target()->send_control(iscsi::NopIn{}, {});
      },
      "wait to be sent");
}

}  // namespace
}  // namespace vjbod::transport
