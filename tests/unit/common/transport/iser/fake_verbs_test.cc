// SPDX-License-Identifier: Apache-2.0
// The fabric that the iSER tests stand on keeps to the rules of reliable connections.
#include "tests/support/fake_verbs.h"

#include <gtest/gtest.h>

#include "common/runtime/manual_reactor.h"
#include "common/transport/rdma_errc.h"

namespace vjbod::transport::rdma {
namespace {

using Status = Completion::Status;
using Kind = SendRequest::Kind;

struct End final : ConnectionEvents {
  void on_cm(const CmReport& report) override {
    events.push_back(report.event);
    failure = report.failure;
  }
  void on_completions() override { ++notices; }
  std::vector<Completion> poll() {
    std::array<Completion, 64> polled;
    const size_t count = connection->poll(polled);
    return {polled.begin(), polled.begin() + static_cast<ptrdiff_t>(count)};
  }
  std::unique_ptr<Region> register_memory(Access access) {
    domain = *connection->domain();
    return std::move(*domain->register_memory(memory, access));
  }

  std::unique_ptr<Connection> connection;
  std::shared_ptr<Domain> domain;
  std::vector<std::byte> memory = std::vector<std::byte>(4096);
  std::vector<CmEvent> events;
  CmFailure failure = CmFailure::none;
  int notices = 0;
};

class FakeVerbs : public ::testing::Test, private AcceptorEvents {
 protected:
  void SetUp() override {
    acceptor_ = *target_fabric_->listen("10.0.0.2", 3260, 8, *this);
    a.connection = *initiator_fabric_->make_connection();
    a.connection->set_events(&a);
    a.connection->resolve_address("", "10.0.0.2", 3260, std::chrono::seconds(1));
    reactor.run_until_idle();
    ASSERT_TRUE(a.connection->make_queue({16, 16}));
    ASSERT_TRUE(a.connection->connect({}));
    reactor.run_until_idle();
    ASSERT_EQ(a.events.back(), CmEvent::established);
  }
  void on_incoming(std::unique_ptr<Incoming> incoming) override {
    b.connection = target_fabric_->adopt(std::move(incoming));
    b.connection->set_events(&b);
    ASSERT_TRUE(b.connection->make_queue({16, 16}));
    ASSERT_TRUE(b.connection->accept({}));
  }
  void on_acceptor_lost(const Error&) override {}
  void post(End& end, SendRequest request) {
    request.signaled = true;
    ASSERT_TRUE(end.connection->post_sends({&request, 1}));
    reactor.run_until_idle();
  }
  // A window of `b` over its first 100 bytes.
  void bind(Window& window, const Region& region, uint32_t key, Access access) {
    post(b, {.kind = Kind::bind,
             .memory = ConstBytes(b.memory).first(100),
             .remote_key = key,
             .window = &window,
             .region = &region,
             .access = access});
  }
  SendRequest write_to_b(const Region& local, uint32_t key, size_t offset, size_t size) {
    return {.kind = Kind::write,
            .memory = ConstBytes(a.memory).first(size),
            .local_key = local.local_key(),
            .remote_address = reinterpret_cast<uint64_t>(b.memory.data() + offset),
            .remote_key = key};
  }

  ManualReactor reactor;
  FakeNetwork network{reactor};
  FakeDevice& device_a = network.add_device({.name = "a", .memory_windows = true}, {"10.0.0.1"});
  FakeDevice& device_b = network.add_device({.name = "b", .memory_windows = true}, {"10.0.0.2"});
  std::unique_ptr<Fabric> initiator_fabric_ = network.make_fabric({&device_a});
  std::unique_ptr<Fabric> target_fabric_ = network.make_fabric({&device_b});
  std::unique_ptr<Acceptor> acceptor_;
  End a, b;
};

TEST_F(FakeVerbs, AMessageFillsThePostedReceive) {
  const auto from = a.register_memory(Access::local), to = b.register_memory(Access::local);
  a.memory[0] = std::byte{7};
  const ReceiveRequest receive{5, b.memory, to->local_key()};
  ASSERT_TRUE(b.connection->post_receives({&receive, 1}));
  b.connection->arm();

  post(a, {.id = 9, .memory = ConstBytes(a.memory).first(10), .local_key = from->local_key()});

  EXPECT_EQ(b.notices, 1);
  const auto received = b.poll(), sent = a.poll();
  ASSERT_EQ(received.size(), 1u);
  EXPECT_TRUE(received[0].receive);
  EXPECT_EQ(received[0].id, 5u);
  EXPECT_EQ(received[0].bytes, 10u);
  EXPECT_EQ(b.memory[0], std::byte{7});
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].id, 9u);
  EXPECT_EQ(sent[0].status, Status::success);
}

TEST_F(FakeVerbs, AMessageWithoutAReceiveWaitsAndIsCounted) {
  const auto from = a.register_memory(Access::local), to = b.register_memory(Access::local);
  post(a, {.memory = ConstBytes(a.memory).first(10), .local_key = from->local_key()});
  EXPECT_TRUE(a.poll().empty());
  const ReceiveRequest receive{5, b.memory, to->local_key()};
  ASSERT_TRUE(b.connection->post_receives({&receive, 1}));
  reactor.advance(std::chrono::milliseconds(5));
  EXPECT_EQ(a.poll().size(), 1u);
  EXPECT_GE(device_a.receiver_not_ready, 1u);
}

TEST_F(FakeVerbs, AMessageLongerThanTheReceiveBreaksBothEnds) {
  const auto from = a.register_memory(Access::local), to = b.register_memory(Access::local);
  const std::array<ReceiveRequest, 2> receives{
      ReceiveRequest{1, Bytes(b.memory).first(9), to->local_key()},
      ReceiveRequest{2, Bytes(b.memory).last(9), to->local_key()}};
  ASSERT_TRUE(b.connection->post_receives(receives));
  post(a, {.memory = ConstBytes(a.memory).first(10), .local_key = from->local_key()});
  const auto received = b.poll();
  ASSERT_EQ(received.size(), 2u);
  EXPECT_EQ(received[0].status, Status::local_length);
  EXPECT_EQ(received[1].status, Status::flushed);
  EXPECT_NE(a.poll().at(0).status, Status::success);
}

TEST_F(FakeVerbs, AWindowGivesItsRangeInItsDirectionUntilItIsInvalid) {
  const auto from = a.register_memory(Access::local), to = b.register_memory(Access::window);
  auto window = *b.domain->make_window();
  const uint32_t key = next_window_key(window->first_key());
  bind(*window, *to, key, Access::remote_write);
  a.memory[0] = std::byte{7};
  post(a, write_to_b(*from, key, 1, 99));
  EXPECT_EQ(b.memory[1], std::byte{7});
  EXPECT_EQ(a.poll().at(0).status, Status::success);

  post(b, {.kind = Kind::invalidate, .remote_key = key});
  post(a, write_to_b(*from, key, 1, 99));
  EXPECT_EQ(a.poll().at(0).status, Status::remote_access);
}

TEST_F(FakeVerbs, AWindowGivesNothingBeyondItsEnd) {
  const auto from = a.register_memory(Access::local), to = b.register_memory(Access::window);
  auto window = *b.domain->make_window();
  const uint32_t key = next_window_key(window->first_key());
  bind(*window, *to, key, Access::remote_write);
  post(a, write_to_b(*from, key, 1, 100));
  EXPECT_EQ(a.poll().at(0).status, Status::remote_access);
  b.poll();
}

TEST_F(FakeVerbs, AWindowForReadingIsNotWritten) {
  const auto from = a.register_memory(Access::local), to = b.register_memory(Access::window);
  auto window = *b.domain->make_window();
  const uint32_t key = next_window_key(window->first_key());
  bind(*window, *to, key, Access::remote_read);
  post(a, write_to_b(*from, key, 0, 100));
  EXPECT_EQ(a.poll().at(0).status, Status::remote_access);
}

TEST_F(FakeVerbs, ARegionThatIsGoneIsNotWritten) {
  const auto from = a.register_memory(Access::local);
  auto to = b.register_memory(Access::remote_write);
  const uint32_t key = to->remote_key();
  to.reset();
  post(a, write_to_b(*from, key, 0, 100));
  EXPECT_EQ(a.poll().at(0).status, Status::remote_access);
}

TEST_F(FakeVerbs, ARemoteInvalidationNeedsAKeyOfThatConnection) {
  const auto from = a.register_memory(Access::local), to = b.register_memory(Access::window);
  auto window = *b.domain->make_window();
  const uint32_t key = next_window_key(window->first_key());
  bind(*window, *to, key, Access::remote_write);
  const auto receive_into = *b.domain->register_memory(b.memory, Access::local);
  const std::array<ReceiveRequest, 2> receives{
      ReceiveRequest{1, Bytes(b.memory).last(100), receive_into->local_key()},
      ReceiveRequest{2, Bytes(b.memory).last(100), receive_into->local_key()}};
  ASSERT_TRUE(b.connection->post_receives(receives));
  b.poll();
  for (int i = 0; i < 2; ++i)
    post(a, {.kind = Kind::send_with_invalidate,
             .memory = ConstBytes(a.memory).first(10),
             .local_key = from->local_key(),
             .remote_key = key});
  const auto received = b.poll();
  ASSERT_EQ(received.size(), 2u);
  EXPECT_TRUE(received[0].invalidated);
  EXPECT_EQ(received[0].key, key);
  EXPECT_NE(received[1].status, Status::success);
}

TEST_F(FakeVerbs, ADisconnectFlushesAndTellsThePeer) {
  const auto to = b.register_memory(Access::local);
  const ReceiveRequest receive{5, b.memory, to->local_key()};
  ASSERT_TRUE(b.connection->post_receives({&receive, 1}));
  b.connection->disconnect();
  reactor.run_until_idle();
  EXPECT_EQ(b.poll().at(0).status, Status::flushed);
  EXPECT_EQ(a.events.back(), CmEvent::disconnected);
}

TEST_F(FakeVerbs, NothingArrivesWhileTheNetworkStalls) {
  const auto from = a.register_memory(Access::local), to = b.register_memory(Access::remote_write);
  network.stall();
  a.memory[0] = std::byte{7};
  post(a, write_to_b(*from, to->remote_key(), 0, 100));
  EXPECT_EQ(b.memory[0], std::byte{0});
  network.resume();
  EXPECT_EQ(b.memory[0], std::byte{7});
}

TEST_F(FakeVerbs, ARemovedDeviceFlushesAndSaysSo) {
  network.remove(device_a);
  reactor.run_until_idle();
  EXPECT_EQ(a.events.back(), CmEvent::device_removed);
}

TEST_F(FakeVerbs, UnsignaledSuccessIsNotReported) {
  const auto from = a.register_memory(Access::local), to = b.register_memory(Access::remote_write);
  std::array<SendRequest, 2> requests{write_to_b(*from, to->remote_key(), 0, 1),
                                      write_to_b(*from, to->remote_key(), 1, 1)};
  requests[1].signaled = true;
  requests[1].id = 2;
  ASSERT_TRUE(a.connection->post_sends(requests));
  reactor.run_until_idle();
  const auto sent = a.poll();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].id, 2u);
}

}  // namespace
}  // namespace vjbod::transport::rdma
