// SPDX-License-Identifier: Apache-2.0
// What is special to the iSER mover: what a peer may reach and for how long, what it may send, and
// what becomes of memory. The contract itself is tested in data_mover_contract_test.cc.
#include "common/transport/iser/iser_data_mover.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "common/iscsi/errc.h"
#include "common/iscsi/pdu_codec.h"
#include "common/runtime/buffer_pool.h"
#include "common/transport/rdma_errc.h"
#include "tests/support/iser_pair.h"
#include "tests/unit/common/transport/mover_worlds.h"

namespace vjbod::transport {
namespace {

using iscsi::Errc;
using rdma::SendRequest;

class IserMover : public ::testing::Test {
 protected:
  explicit IserMover(IserPairOptions options = {}) : pair(options) {
    pair.initiator->start(host);
    pair.target->start(nas);
    parameters.our_max_recv_data_segment_length = 8192;
    parameters.peer_max_recv_data_segment_length = 8192;
    parameters.immediate_data = false;
  }
  ~IserMover() override {
    pair.network.on_message = nullptr;
    pair.network.on_request = nullptr;
    for (auto* mover : {&pair.initiator, &pair.target})
      if (*mover) (*mover)->terminate({Errc::closed_locally, "The test is over."});
    EXPECT_TRUE(run([&] { return host.times_closed == 1 && nas.times_closed == 1; }));
  }
  void log_in() {
    pair.initiator->enable_full_feature(parameters, host_numbers);
    pair.target->enable_full_feature(parameters, nas_numbers);
  }
  bool run(const std::function<bool()>& done) {
    return pair.reactor.run_until(done, std::chrono::seconds(60));
  }
  void settle() { pair.reactor.advance(std::chrono::seconds(5)); }
  TaskHandle command(uint32_t itt, ConstBytes write, Bytes read) {
    const size_t before = nas.controls.size();
    iscsi::ScsiCommand pdu;
    pdu.itt = itt;
    pdu.read = !read.empty();
    pdu.write = !write.empty();
    pdu.expected_data_transfer_length = static_cast<uint32_t>(read.size() + write.size());
    pair.initiator->begin_task(pdu, write, read);
    EXPECT_TRUE(run([&] { return nas.controls.size() > before; }));
    return nas.controls.back().task;
  }
  void respond(uint32_t itt) {
    iscsi::ScsiResponse response;
    response.itt = itt;
    pair.target->send_control(response, {});
  }
  std::vector<uint32_t> keys_at_initiator() const {
    std::vector<uint32_t> keys;
    for (const auto& [key, window] : pair.initiator_device.bound_windows) keys.push_back(key);
    return keys;
  }

  IserPair pair;
  Recorder host, nas;
  iscsi::NegotiatedParameters parameters;
  SequenceNumbers host_numbers, nas_numbers;
  std::vector<std::byte> memory = std::vector<std::byte>(size_t{64} << 10, std::byte{0x5a});
};

// --- what the target may reach ---

TEST_F(IserMover, AWriteCanBeReadByTheTargetAndNothingElse) {
  log_in();
  command(1, Bytes(memory).subspan(100, 5000), {});
  ASSERT_EQ(pair.initiator_device.bound_windows.size(), 1U);
  const auto& window = pair.initiator_device.bound_windows.begin()->second;
  EXPECT_EQ(window.access, rdma::Access::remote_read);
  EXPECT_EQ(window.memory.data(), memory.data() + 100);
  EXPECT_EQ(window.memory.size(), 5000U);
}

TEST_F(IserMover, AReadCanBeWrittenByTheTargetAndNothingElse) {
  log_in();
  command(1, {}, Bytes(memory).first(777));
  ASSERT_EQ(pair.initiator_device.bound_windows.size(), 1U);
  const auto& window = pair.initiator_device.bound_windows.begin()->second;
  EXPECT_EQ(window.access, rdma::Access::remote_write);
  EXPECT_EQ(window.memory.size(), 777U);
}

TEST_F(IserMover, OnlyWhatDoesNotComeWithTheCommandIsLent) {
  parameters.immediate_data = true;
  parameters.first_burst_length = 3000;
  log_in();
  const TaskHandle task = command(1, Bytes(memory).first(10000), {});
  ASSERT_EQ(nas.controls.back().data.size(), 3000U);
  ASSERT_EQ(pair.initiator_device.bound_windows.size(), 1U);
  const auto& window = pair.initiator_device.bound_windows.begin()->second;
  EXPECT_EQ(window.memory.data(), memory.data() + 3000);
  EXPECT_EQ(window.memory.size(), 7000U);

  std::vector<std::byte> rest(7000);
  pair.target->get_data(task, 3000, rest);
  ASSERT_TRUE(run([&] { return nas.transfers_done.size() == 1; }));
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), memory.begin() + 3000));
}

TEST_F(IserMover, AWriteThatComesWithItsCommandLendsNothing) {
  parameters.immediate_data = true;
  log_in();
  command(1, Bytes(memory).first(4096), {});
  EXPECT_TRUE(pair.initiator_device.bound_windows.empty());
}

TEST_F(IserMover, TheResponseTakesTheKeyBackAndTheNextCommandHasAnotherOne) {
  log_in();
  command(1, {}, memory);
  const auto first = keys_at_initiator();
  respond(1);
  ASSERT_TRUE(run([&] { return host.controls.size() == 1; }));
  EXPECT_TRUE(pair.initiator_device.bound_windows.empty());
  command(2, {}, memory);
  EXPECT_NE(keys_at_initiator(), first);
}

TEST_F(IserMover, ALateWriteOfADeadConnectionNeverReachesTheMemoryAgain) {
  log_in();
  const TaskHandle task = command(1, {}, memory);
  pair.network.stall();
  const std::vector<std::byte> stale(memory.size(), std::byte{0x11});
  pair.target->put_data(task, 0, stale);
  settle();

  pair.initiator->terminate({Errc::timed_out, "No life."});
  ASSERT_TRUE(run([&] { return host.closed.has_value(); }));
  std::ranges::fill(memory, std::byte{0xee});  // somebody else's now
  pair.network.resume();
  settle();

  EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte b) { return b == std::byte{0xee}; }));
}

TEST_F(IserMover, AResponseThatInvalidatesNothingIsDeliveredAfterOurOwnInvalidation) {
  log_in();
  const TaskHandle task = command(1, {}, memory);
  pair.target->end_task(task);  // so that the mover does not know the key any more
  size_t bound_at_response = 99;
  host.control_hook = [&](const Recorder::Control&) {
    bound_at_response = pair.initiator_device.bound_windows.size();
  };
  respond(1);
  ASSERT_TRUE(run([&] { return host.controls.size() == 1; }));
  EXPECT_EQ(bound_at_response, 0U);
}

TEST_F(IserMover, PdusBehindAResponseThatWaitsForItsInvalidationStayBehindIt) {
  log_in();
  const TaskHandle task = command(1, {}, memory);
  pair.target->end_task(task);
  respond(1);
  pair.target->send_control(iscsi::NopIn{}, {});
  ASSERT_TRUE(run([&] { return host.controls.size() == 2; }));
  EXPECT_TRUE(std::holds_alternative<iscsi::ScsiResponse>(host.controls[0].pdu));
}

// --- registration ---

TEST_F(IserMover, ASlabIsRegisteredOnceAndUntilItIsUnmapped) {
  log_in();
  BufferPool pool(size_t{4} << 20, &pair.reactor.slabs());
  Buffer buffer = pool.acquire(20000);
  const uint64_t before = pair.initiator_device.registrations;
  for (uint32_t itt = 1; itt <= 3; ++itt) {
    const TaskHandle task = command(itt, {}, buffer.bytes().subspan(itt * 100, 10000));
    respond(itt);
    ASSERT_TRUE(run([&] { return host.controls.size() == itt; }));
    pair.target->end_task(task);
  }
  EXPECT_EQ(pair.initiator_device.registrations, before + 1);
  const size_t regions = pair.initiator_device.regions.size();
  buffer.reset();
  pool.trim(0);
  EXPECT_EQ(pair.initiator_device.regions.size(), regions - 1);
}

TEST_F(IserMover, MemoryThatCannotBeRegisteredEndsTheConnectionWithTheLimitNamed) {
  log_in();
  pair.initiator_device.memlock_bytes = 0;
  iscsi::ScsiCommand read;
  read.read = true;
  read.expected_data_transfer_length = 4096;
  EXPECT_EQ(pair.initiator->begin_task(read, {}, Bytes(memory).first(4096)), no_task);
  ASSERT_TRUE(run([&] { return host.closed.has_value(); }));
  EXPECT_EQ(host.closed->code, RdmaErrc::memlock);
}

// --- what a peer may send ---

class IserPeer : public IserMover {
 protected:
  // The next message of anybody is changed on its way.
  void change_next_message(std::function<void(std::vector<std::byte>&)> change) {
    pair.network.on_message = [this, change](std::vector<std::byte>& message) {
      change(message);
      pair.network.on_message = nullptr;
    };
  }
  void expect_target_closes(const std::error_code& code) {
    ASSERT_TRUE(run([&] { return nas.closed.has_value(); }));
    EXPECT_EQ(nas.closed->code, code) << nas.closed->text;
    EXPECT_TRUE(nas.controls.empty());
  }
};

TEST_F(IserPeer, AMessageShorterThanItsHeadersEndsTheConnection) {
  change_next_message([](auto& message) { message.resize(75); });
  pair.initiator->send_control(iscsi::LoginRequest{}, {});
  expect_target_closes(RdmaErrc::bad_length);
}

TEST_F(IserPeer, ADataSegmentLongerThanWhatCameEndsTheConnection) {
  change_next_message([](auto& message) { message.resize(message.size() - 1); });
  pair.initiator->send_control(iscsi::LoginRequest{}, Bytes(memory).first(200));
  expect_target_closes(RdmaErrc::bad_length);
}

TEST_F(IserPeer, BytesBehindTheDataSegmentEndTheConnection) {
  change_next_message([](auto& message) { message.resize(message.size() + 4); });
  pair.initiator->send_control(iscsi::LoginRequest{}, Bytes(memory).first(200));
  expect_target_closes(RdmaErrc::bad_length);
}

TEST_F(IserPeer, AMessageLongerThanThePostedBufferEndsTheConnection) {
  change_next_message([](auto& message) { message.resize(20000); });
  pair.initiator->send_control(iscsi::LoginRequest{}, {});
  expect_target_closes(RdmaErrc::bad_length);
}

TEST_F(IserPeer, AHelloEndsTheConnection) {
  change_next_message([](auto& message) { message[0] = std::byte{0x20}; });
  pair.initiator->send_control(iscsi::LoginRequest{}, {});
  expect_target_closes(RdmaErrc::out_of_state);
}

TEST_F(IserPeer, DataOutEndsTheConnection) {
  log_in();
  change_next_message([](auto& message) { message[iser_header_bytes] = std::byte{0x05}; });
  pair.initiator->send_control(iscsi::NopOut{}, {});
  expect_target_closes(RdmaErrc::out_of_state);
}

TEST_F(IserPeer, AnUnknownOpcodeEndsTheConnection) {
  change_next_message([](auto& message) { message[iser_header_bytes] = std::byte{0x1e}; });
  pair.initiator->send_control(iscsi::LoginRequest{}, {});
  expect_target_closes(Errc::unknown_opcode);
}

TEST_F(IserPeer, ACommandWithoutTheBufferItNeedsEndsTheConnectionWhenDataIsToMove) {
  log_in();
  change_next_message([](auto& message) { message[0] = std::byte{0x10}; });  // no key is valid
  const TaskHandle task = command(1, {}, memory);
  pair.target->put_data(task, 0, memory);
  ASSERT_TRUE(run([&] { return nas.closed.has_value(); }));
  EXPECT_EQ(nas.closed->code, RdmaErrc::bad_key);
}

TEST_F(IserPeer, AWrongKeyEndsTheConnectionAndTouchesNothing) {
  log_in();
  change_next_message([](auto& message) { message[19] ^= std::byte{0x77}; });  // of the read key
  const TaskHandle task = command(1, {}, memory);
  const auto before = memory;
  const std::vector<std::byte> data(memory.size(), std::byte{1});
  pair.target->put_data(task, 0, data);
  ASSERT_TRUE(run([&] { return nas.closed.has_value(); }));
  EXPECT_EQ(nas.closed->code, RdmaErrc::transfer_failed);
  EXPECT_EQ(memory, before);
}

TEST_F(IserPeer, AResponseForNoTaskEndsTheConnection) {
  log_in();
  respond(77);
  ASSERT_TRUE(run([&] { return host.closed.has_value(); }));
  EXPECT_EQ(host.closed->code, Errc::protocol);
}

TEST_F(IserPeer, AnInvalidationOfAnotherCommandsKeyEndsTheConnection) {
  log_in();
  command(1, {}, Bytes(memory).first(1000));
  command(2, {}, Bytes(memory).subspan(1000));
  // The response of the first takes back the key of the second.
  change_next_message([](auto& message) {
    store_big_endian<uint32_t>(message.data() + iser_header_bytes + 16, 2);
  });
  respond(1);
  ASSERT_TRUE(run([&] { return host.closed.has_value(); }));
  EXPECT_EQ(host.closed->code, RdmaErrc::bad_key);
  EXPECT_TRUE(host.controls.empty());
}

TEST_F(IserPeer, ACommandBeforeTheLoginIsOverEndsTheConnection) {
  change_next_message([](auto& message) { message[iser_header_bytes] = std::byte{0x01}; });
  pair.initiator->send_control(iscsi::NopOut{}, {});
  expect_target_closes(RdmaErrc::out_of_state);
}

// --- ends that declare more than they post ---

class ForeignInitiator : public IserMover {
 protected:
  static IserPairOptions foreign() {
    IserPairOptions options;
    options.foreign_initiator = true;
    return options;
  }
  ForeignInitiator() : IserMover(foreign()) {}
};

TEST_F(ForeignInitiator, GetsNoMoreThan128BytesOfDataInOnePdu) {
  EXPECT_EQ(pair.target->capabilities().peer_data_segment_length_max, 128U);
}

TEST_F(IserMover, OurOwnInitiatorGetsWhatItDeclares) {
  EXPECT_EQ(pair.target->capabilities().peer_data_segment_length_max, 8192U);
}

// --- loss ---

TEST_F(IserMover, ARemovedDeviceIsNamed) {
  log_in();
  settle();
  pair.network.remove(pair.initiator_device);
  ASSERT_TRUE(run([&] { return host.closed.has_value(); }));
  EXPECT_EQ(host.closed->code, RdmaErrc::device_removed);
}

TEST_F(IserMover, AMovedAddressIsNamed) {
  log_in();
  pair.network.move_address_of(pair.target_device);
  ASSERT_TRUE(run([&] { return nas.closed.has_value(); }));
  EXPECT_EQ(nas.closed->code, RdmaErrc::address_changed);
}

TEST_F(IserMover, AConnectionLostBeforeStartIsToldAfterIt) {
  IserPair other;
  Recorder events;
  other.network.sever();
  other.reactor.run_until_idle();
  other.initiator->start(events);
  other.reactor.run_until([&] { return events.closed.has_value(); }, std::chrono::seconds(5));
  ASSERT_TRUE(events.closed.has_value());
  EXPECT_EQ(events.closed->code, Errc::connection_lost);
}

}  // namespace
}  // namespace vjbod::transport
