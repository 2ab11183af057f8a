// SPDX-License-Identifier: Apache-2.0
#include "initiator/frontend/nbd_server.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <future>

#include <gtest/gtest.h>

#include "tests/support/memory_block_device.h"
#include "tests/support/nbd_client.h"
#include "tests/support/run_on.h"

namespace vjbod::initiator {
namespace {

namespace fs = std::filesystem;
using namespace nbd;
using test::eventually;
using test::NbdClient;
using test::run_on;

constexpr uint32_t mib = 1 << 20;
constexpr size_t shard_memory_bytes = 16 * mib;

// A server on two shards with a disk in RAM.
class NbdServerTest : public testing::Test, public FrontendOwner {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "nbdXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
    options.socket.path = folder / "disk.sock";
    options.connection.exported = {"disk0", ""};
  }
  void TearDown() override {
    if (server) {
      stop();
      EXPECT_TRUE(eventually_closed());
      server.reset();
    }
    fs::remove_all(folder);
  }

  void start(bool geometry_known = true) {
    device.emplace(home.reactor(), test::full_geometry(8 * mib), geometry_known);
    server.emplace(*device, home, std::vector<Shard*>{&other}, options);
    const Status started = run_on(home, [this] { return server->start(*this); });
    ASSERT_TRUE(started) << started.error().text;
  }
  void stop() {
    run_on(home, [this] { server->stop(); });
  }
  bool eventually_closed() {
    return eventually(home, [this] { return closed; });
  }
  bool eventually_at_disk(size_t requests) {
    return eventually(home, [=, this] { return device->waiting_count() == requests; });
  }
  bool eventually_clients(size_t count) {
    return eventually(home, [=, this] { return server->connection_count() == count; });
  }
  std::string path() const { return options.socket.path; }
  void on_frontend_closed() override { closed = true; }

  fs::path folder;
  NbdServerOptions options;
  Shard home{"home", -1, 1, shard_memory_bytes};
  Shard other{"other", -1, 2, shard_memory_bytes};
  std::optional<test::MemoryBlockDevice> device;
  std::optional<NbdServer> server;
  bool closed = false;
};

TEST_F(NbdServerTest, ServesReadsAndWrites) {
  start();
  NbdClient client(path());
  const auto chosen = client.handshake();
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->size_bytes, 8 * mib);
  const std::string data(3 * mib, 'x');
  client.send_request(Command::write, mib, 3 * mib, command_flag::fua, data);
  EXPECT_EQ(client.receive_reply().value().error, WireError::none);
  client.send_request(Command::read, mib, 3 * mib);
  EXPECT_EQ(client.receive_reply().value().data, data);
}

TEST_F(NbdServerTest, PathAndUriAreWhatClientsNeed) {
  options.socket.path = folder / "a b.sock";
  start();
  EXPECT_EQ(server->device(), options.socket.path);
  EXPECT_EQ(server->uri(), "nbd+unix:///?socket=" + folder.string() + "/a%20b.sock");
}

TEST_F(NbdServerTest, ConnectionsOfBothShardsSeeOneDisk) {
  start();
  NbdClient first(path()), second(path()), third(path());
  ASSERT_TRUE(first.handshake() && second.handshake() && third.handshake());
  for (uint64_t i = 0; i < 100; ++i) {
    const std::string data(4096, static_cast<char>('a' + i % 26));
    second.send_request(Command::write, i * 4096, 4096, 0, data);
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(second.receive_reply().value().error, WireError::none);
  }
  first.send_request(Command::read, 99 * 4096, 4096);
  EXPECT_EQ(first.receive_reply().value().data, std::string(4096, 'a' + 99 % 26));
  third.send_request(Command::read, 4096, 4096);
  EXPECT_EQ(third.receive_reply().value().data, std::string(4096, 'b'));
}

TEST_F(NbdServerTest, BadRequestsAreAnsweredAndTheConnectionGoesOn) {
  start();
  NbdClient client(path());
  ASSERT_TRUE(client.handshake());
  client.send_request(Command::write, 8 * mib, 512, 0, std::string(512, 'x'));
  EXPECT_EQ(client.receive_reply().value().error, WireError::no_space);
  client.send_request(Command::read, 0, 33 * mib);
  EXPECT_EQ(client.receive_reply().value().error, WireError::invalid);
  client.send_request(static_cast<Command>(50), 0, 0);
  EXPECT_EQ(client.receive_reply().value().error, WireError::invalid);
  client.send_request(Command::flush, 0, 0);
  EXPECT_EQ(client.receive_reply().value().error, WireError::none);
}

TEST_F(NbdServerTest, BrokenMagicClosesOnlyThatConnection) {
  start();
  NbdClient bad(path()), good(path());
  ASSERT_TRUE(bad.handshake() && good.handshake());
  bad.send(std::string(request_bytes, 'x'));
  EXPECT_TRUE(bad.closed_by_server());
  good.send_request(Command::flush, 0, 0);
  EXPECT_TRUE(good.receive_reply());
}

TEST_F(NbdServerTest, DisconnectIsDoneAfterTheRepliesDue) {
  start();
  NbdClient client(path());
  ASSERT_TRUE(client.handshake());
  client.send_request(Command::read, 0, 4096);
  client.send_request(Command::disconnect, 0, 0);
  EXPECT_TRUE(client.receive_reply());
  EXPECT_TRUE(client.closed_by_server());
  EXPECT_TRUE(eventually_clients(0));
}

TEST_F(NbdServerTest, ClientThatVanishesLeavesItsRequestsToFinish) {
  start();
  run_on(home, [this] { device->hold(); });
  std::optional<NbdClient> local(path()), remote(path());
  ASSERT_TRUE(local->handshake() && remote->handshake());
  for (NbdClient* client : {&*local, &*remote}) {
    client->send_request(Command::read, 0, 2 * Transmission::streamed_piece_bytes_max);
    client->send_request(Command::write, 0, 512, 0, std::string(512, 'x'));
  }
  ASSERT_TRUE(eventually_at_disk(6));
  local.reset();
  remote.reset();
  EXPECT_EQ(run_on(home, [this] { return server->connection_count(); }), 2u);
  run_on(home, [this] { device->release(); });
  EXPECT_TRUE(eventually_clients(0));
}

// Else that write would land on what the next client has written, and was told is safe.
TEST_F(NbdServerTest, NobodyIsLetInBeforeTheRequestsOfAVanishedClientAreOver) {
  start();
  run_on(home, [this] { device->hold(); });
  std::optional<NbdClient> staying(path()), vanishing(path());
  ASSERT_TRUE(staying->handshake() && vanishing->handshake());
  vanishing->send_request(Command::write, 0, 512, 0, std::string(512, 'x'));
  ASSERT_TRUE(eventually_at_disk(1));
  vanishing.reset();
  NbdClient next(path());
  auto let_in = std::async(std::launch::async, [&] { return next.handshake().has_value(); });
  EXPECT_EQ(let_in.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  run_on(home, [this] { device->release(); });
  EXPECT_TRUE(let_in.get());
}

TEST_F(NbdServerTest, HalfClosedClientStillGetsItsReplies) {
  start();
  run_on(home, [this] { device->hold(); });
  NbdClient client(path());
  ASSERT_TRUE(client.handshake());
  client.send_request(Command::read, 0, 4096);
  client.end_sending();
  ASSERT_TRUE(eventually_at_disk(1));
  run_on(home, [this] { device->release(); });
  EXPECT_TRUE(client.receive_reply());
  EXPECT_TRUE(client.closed_by_server());
}

TEST_F(NbdServerTest, StopClosesClientsThoughTheDiskIsSilent) {
  options.connection.stop_grace = std::chrono::milliseconds(50);
  start();
  run_on(home, [this] { device->hold(); });
  NbdClient local(path()), remote(path()), greeted(path()), silent(path());
  ASSERT_TRUE(local.handshake() && remote.handshake() && greeted.greet());
  local.send_request(Command::read, 0, 4096);
  remote.send_request(Command::write, 0, 512, 0, std::string(512, 'x'));
  ASSERT_TRUE(eventually_at_disk(2));
  stop();
  EXPECT_FALSE(fs::exists(path()));
  for (NbdClient* client : {&local, &remote, &greeted, &silent}) {
    EXPECT_TRUE(client->closed_by_server());
  }
  EXPECT_TRUE(eventually_clients(2));
  EXPECT_FALSE(run_on(home, [this] { return closed; })) << "the disk still has memory of ours";
  run_on(home, [this] { device->release(ESHUTDOWN); });
  EXPECT_TRUE(eventually_closed());
}

TEST_F(NbdServerTest, RequestsUnderWayAtStopAreAnsweredIfTheDiskIsQuick) {
  options.connection.stop_grace = std::chrono::minutes(1);
  start();
  run_on(home, [this] { device->hold(); });
  NbdClient local(path()), remote(path());
  ASSERT_TRUE(local.handshake() && remote.handshake());
  local.send_request(Command::read, 0, 4096);
  remote.send_request(Command::read, 0, 4096);
  ASSERT_TRUE(eventually_at_disk(2));
  stop();
  run_on(home, [this] { device->release(ESHUTDOWN); });
  for (NbdClient* client : {&local, &remote}) {
    EXPECT_EQ(client->receive_reply().value().error, WireError::shutting_down);
    EXPECT_TRUE(client->closed_by_server());
  }
  EXPECT_TRUE(eventually_closed());
}

TEST_F(NbdServerTest, HangingUpLeavesWhatIsUnderWayWithoutAnAnswer) {
  options.connection.stop_grace = std::chrono::minutes(1);
  start();
  run_on(home, [this] { device->hold(); });
  NbdClient local(path()), remote(path());
  ASSERT_TRUE(local.handshake() && remote.handshake());
  local.send_request(Command::read, 0, 4096);
  remote.send_request(Command::write, 0, 4096, 0, std::string(4096, 'x'));
  ASSERT_TRUE(eventually_at_disk(2));
  std::promise<void> hung_up;
  run_on(home, [&] { server->hang_up([&] { hung_up.set_value(); }); });
  hung_up.get_future().wait();
  run_on(home, [this] { device->release(ESHUTDOWN); });
  for (NbdClient* client : {&local, &remote}) EXPECT_FALSE(client->receive_reply());
  EXPECT_TRUE(eventually_closed());
}

TEST_F(NbdServerTest, ClientWaitsForADiskThatWasNeverReached) {
  start(false);
  NbdClient local(path()), remote(path());
  ASSERT_TRUE(local.greet() && remote.greet());
  local.send_go();
  remote.send_go();
  ASSERT_TRUE(eventually_clients(2));
  run_on(home, [this] { device->announce(test::full_geometry(4 * mib)); });
  EXPECT_EQ(local.receive_go().value().size_bytes, 4 * mib);
  EXPECT_EQ(remote.receive_go().value().size_bytes, 4 * mib);
}

TEST_F(NbdServerTest, WaitingForTheSizeEndsWithAnErrorThatSaysWhy) {
  options.connection.geometry_wait_max = std::chrono::milliseconds(20);
  start(false);
  NbdClient client(path());
  ASSERT_TRUE(client.greet());
  client.send_go();
  const auto chosen = client.receive_go();
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->result, OptionReply::error_unknown);
  EXPECT_NE(chosen->message, "");
  client.send_go();
  EXPECT_TRUE(client.receive_go()) << "it may ask again";
}

TEST_F(NbdServerTest, StopTellsAWaitingClientThatTheServerEnds) {
  start(false);
  NbdClient client(path());
  ASSERT_TRUE(client.greet());
  client.send_go();
  ASSERT_TRUE(client.eventually_taken());
  stop();
  EXPECT_EQ(client.receive_go().value().result, OptionReply::error_shutdown);
  EXPECT_TRUE(client.closed_by_server());
}

TEST_F(NbdServerTest, NewClientsSeeTheGrownDisk) {
  start();
  NbdClient before(path());
  EXPECT_EQ(before.handshake().value().size_bytes, 8 * mib);
  run_on(home, [this] { device->announce(test::full_geometry(16 * mib)); });
  NbdClient after(path());
  EXPECT_EQ(after.handshake().value().size_bytes, 16 * mib);
  before.send_request(Command::read, 12 * mib, 512);
  EXPECT_EQ(before.receive_reply().value().error, WireError::invalid) << "it was told 8 MiB";
  after.send_request(Command::read, 12 * mib, 512);
  EXPECT_EQ(after.receive_reply().value().error, WireError::none);
}

TEST_F(NbdServerTest, ClientsBeyondTheLimitAreTurnedAway) {
  options.connections_max = 2;
  start();
  NbdClient first(path()), second(path());
  ASSERT_TRUE(first.handshake() && second.handshake());
  NbdClient third(path());
  EXPECT_TRUE(third.closed_by_server());
  first.close();
  ASSERT_TRUE(eventually_clients(1));
  NbdClient fourth(path());
  EXPECT_TRUE(fourth.handshake());
}

TEST_F(NbdServerTest, HandshakeThatNeverEndsIsClosed) {
  options.connection.handshake_time_max = std::chrono::milliseconds(20);
  start();
  NbdClient client(path());
  ASSERT_TRUE(client.greet());
  EXPECT_TRUE(client.closed_by_server());
}

TEST_F(NbdServerTest, PathInUseIsAnErrorAndNothingIsExported) {
  start();
  test::MemoryBlockDevice second_device(home.reactor(), test::full_geometry(mib));
  NbdServer second(second_device, home, {}, options);
  const Status started = run_on(home, [&] { return second.start(*this); });
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, system_code(EADDRINUSE));
}

TEST_F(NbdServerTest, LargeRepliesReachAClientThatReadsLate) {
  start();
  NbdClient local(path()), remote(path());
  ASSERT_TRUE(local.handshake() && remote.handshake());
  for (int i = 0; i < 20; ++i) {
    local.send_request(Command::read, 0, 8 * mib);
    remote.send_request(Command::read, 0, 8 * mib);
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(local.receive_reply().value().data.size(), 8 * mib);
    EXPECT_EQ(remote.receive_reply().value().data.size(), 8 * mib);
  }
}

}  // namespace
}  // namespace vjbod::initiator
