// SPDX-License-Identifier: Apache-2.0
// Connecting and listening over the loopback interface.
#include <set>

#include <gtest/gtest.h>
#include <netinet/in.h>

#include "common/iscsi/errc.h"
#include "common/transport/tcp/tcp_connector.h"
#include "common/transport/tcp/tcp_listener.h"
#include "tests/unit/common/transport/mover_worlds.h"

namespace vjbod::transport {
namespace {

uint16_t port_of(const std::string& endpoint) {
  return static_cast<uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
}

bool has_ipv6() {
  const Socket socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto loopback = parse_address("::1", 0);
  return socket && ::bind(socket.fd(), loopback->get(), loopback->length) == 0;
}

class TcpSockets : public ::testing::Test, protected TcpListenerEvents {
 protected:
  void on_accepted(AcceptedSocket socket) override {
    accepted.push_back(std::move(socket));
    if (pause_after != 0 && accepted.size() == pause_after) listener->pause();
  }
  void on_accept_trouble(const Error& error) override { troubles.push_back(error); }

  void listen(const std::string& address) {
    auto opened = TcpListener::open(reactor, address, 0, "", *this);
    ASSERT_TRUE(opened.has_value()) << opened.error().text;
    listener = std::move(*opened);
  }
  // The outcome of an attempt; nullptr while there is none.
  void connect(Endpoint to, Duration timeout = std::chrono::seconds(10)) {
    if (to.port == 3260) to.port = port_of(listener->local());
    outcome.reset();
    attempt = connector.connect(to, timeout, [this](auto result) { outcome = std::move(result); });
    EXPECT_FALSE(outcome.has_value()) << "an upcall from inside connect()";
    ASSERT_TRUE(run_until([&] { return outcome.has_value(); }));
  }
  static Endpoint endpoint(const std::string& address) {
    Endpoint to;
    to.address = address;
    return to;
  }
  bool run_until(const std::function<bool()>& done) {
    return reactor.run_until(done, std::chrono::seconds(20));
  }
  const Error& error() const { return outcome->error(); }

  AsioReactor reactor{1};
  TcpConnector connector{reactor};
  std::unique_ptr<TcpListener> listener;
  size_t pause_after = 0;
  std::vector<AcceptedSocket> accepted;
  std::vector<Error> troubles;
  std::optional<Result<std::unique_ptr<DataMover>>> outcome;
  std::unique_ptr<ConnectAttempt> attempt;
};

TEST_F(TcpSockets, AConnectionCarriesPdusBothWays) {
  listen("127.0.0.1");
  connect(endpoint("127.0.0.1"));
  ASSERT_TRUE(outcome->has_value()) << error().text;
  ASSERT_TRUE(run_until([&] { return accepted.size() == 1; }));
  EXPECT_EQ(accepted[0].peer_address, "127.0.0.1");
  auto initiator = std::move(**outcome);
  auto target = make_tcp_mover(reactor, std::move(accepted[0].socket));
  EXPECT_EQ(initiator->peer(), listener->local());
  EXPECT_EQ(target->local(), listener->local());
  EXPECT_EQ(initiator->local(), target->peer());
  EXPECT_EQ(target->peer(), accepted[0].peer);
  Recorder at_initiator, at_target;
  initiator->start(at_initiator);
  target->start(at_target);

  initiator->send_control(iscsi::LoginRequest{}, {});
  target->send_control(iscsi::LoginResponse{}, {});
  EXPECT_TRUE(run_until(
      [&] { return at_target.controls.size() == 1 && at_initiator.controls.size() == 1; }));

  initiator->terminate({iscsi::Errc::closed_locally, "Enough."});
  EXPECT_TRUE(run_until([&] { return at_initiator.closed && at_target.closed; }));
  EXPECT_EQ(at_target.closed->code, iscsi::Errc::connection_lost);
}

TEST_F(TcpSockets, ALoginErrorArrivesEvenWhenTheRefusedSideWentOnSending) {
  listen("127.0.0.1");
  connect(endpoint("127.0.0.1"));
  ASSERT_TRUE(outcome->has_value()) << error().text;
  ASSERT_TRUE(run_until([&] { return accepted.size() == 1; }));
  auto initiator = std::move(**outcome);
  auto target = make_tcp_mover(reactor, std::move(accepted[0].socket));
  Recorder at_initiator, at_target;
  at_target.control_hook = [&](const Recorder::Control&) {
    iscsi::LoginResponse refused;
    refused.status_class = 2;
    target->send_control(refused, {});
    target->terminate({iscsi::Errc::authentication, "Refused."});
  };
  target->start(at_target);
  const std::vector<std::byte> text(8192);
  for (int i = 0; i < 100; ++i) initiator->send_control(iscsi::LoginRequest{}, text);
  initiator->start(at_initiator);
  for (int i = 0; i < 100; ++i) initiator->send_control(iscsi::LoginRequest{}, text);

  ASSERT_TRUE(run_until([&] { return at_initiator.closed && at_target.closed; }));
  ASSERT_EQ(at_initiator.controls.size(), 1u);
  EXPECT_EQ(at_initiator.controls[0].as<iscsi::LoginResponse>().status_class, 2);
}

TEST_F(TcpSockets, ADualStackListenerShowsIpv4PeersAsIpv4) {
  listen("::");
  connect(endpoint("127.0.0.1"));
  ASSERT_TRUE(outcome->has_value()) << error().text;
  ASSERT_TRUE(run_until([&] { return accepted.size() == 1; }));
  EXPECT_EQ(accepted[0].peer_address, "127.0.0.1");
  auto target = make_tcp_mover(reactor, std::move(accepted[0].socket));
  EXPECT_EQ(target->local(), fmt::format("127.0.0.1:{}", port_of(listener->local())));
}

TEST_F(TcpSockets, Ipv6IsWrittenInBrackets) {
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6 on this machine";
  listen("::1");
  EXPECT_EQ(listener->local().substr(0, 6), "[::1]:");
  connect(endpoint("::1"));
  ASSERT_TRUE(outcome->has_value()) << error().text;
  ASSERT_TRUE(run_until([&] { return accepted.size() == 1; }));
  EXPECT_EQ(accepted[0].peer_address, "::1");
}

TEST_F(TcpSockets, APortInUseIsNamed) {
  listen("127.0.0.1");
  const auto second =
      TcpListener::open(reactor, "127.0.0.1", port_of(listener->local()), "", *this);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, system_code(EADDRINUSE));
  EXPECT_NE(second.error().text.find(listener->local()), std::string::npos);
}

TEST_F(TcpSockets, AnAddressOfNoInterfaceIsNamed) {
  const auto opened = TcpListener::open(reactor, "192.0.2.1", 0, "", *this);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, system_code(EADDRNOTAVAIL));
  EXPECT_NE(opened.error().text.find("192.0.2.1"), std::string::npos);
}

TEST_F(TcpSockets, AHostNameIsNotAnAddress) {
  EXPECT_FALSE(TcpListener::open(reactor, "localhost", 0, "", *this).has_value());
  listen("127.0.0.1");
  connect(endpoint("localhost"));
  ASSERT_FALSE(outcome->has_value());
  EXPECT_NE(error().text.find("localhost"), std::string::npos);
}

TEST_F(TcpSockets, APausedListenerLeavesConnectionsInTheBacklog) {
  listen("127.0.0.1");
  pause_after = 1;
  connect(endpoint("127.0.0.1"));
  ASSERT_TRUE(run_until([&] { return accepted.size() == 1; }));
  auto first = std::move(*outcome);
  connect(endpoint("127.0.0.1"));
  ASSERT_TRUE(outcome->has_value());  // the kernel took it
  int turns = 0;
  run_until([&] {
    reactor.post([] {});
    return ++turns > 20;
  });
  EXPECT_EQ(accepted.size(), 1u);

  listener->resume();
  EXPECT_TRUE(run_until([&] { return accepted.size() == 2; }));
}

TEST_F(TcpSockets, ManyConnectionsAreAllAccepted) {
  listen("127.0.0.1");
  std::vector<Socket> clients;
  const auto address = parse_address("127.0.0.1", port_of(listener->local()));
  for (int i = 0; i < 100; ++i) {
    clients.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(clients.back().fd(), address->get(), address->length), 0);
  }
  EXPECT_TRUE(run_until([&] { return accepted.size() == clients.size(); }));
  std::set<std::string> peers;
  for (const auto& each : accepted) peers.insert(each.peer);
  EXPECT_EQ(peers.size(), clients.size());
}

TEST_F(TcpSockets, ARefusedConnectionSaysWhere) {
  listen("127.0.0.1");
  Endpoint to = endpoint("127.0.0.1");
  to.port = port_of(listener->local());
  listener.reset();
  connect(to);
  ASSERT_FALSE(outcome->has_value());
  EXPECT_EQ(error().code, system_code(ECONNREFUSED));
  EXPECT_NE(error().text.find(text_of(to)), std::string::npos);
}

TEST_F(TcpSockets, NoAnswerWithinTheDeadlineIsATimeout) {
  // A full backlog: the kernel drops what comes.
  const Socket full(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto any = parse_address("127.0.0.1", 0);
  ASSERT_EQ(::bind(full.fd(), any->get(), any->length), 0);
  ASSERT_EQ(::listen(full.fd(), 0), 0);
  Endpoint to = endpoint("127.0.0.1");
  to.port = port_of(local_name_of(full.fd()));
  const auto address = parse_address(to.address, to.port);
  const Socket filler(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(filler.fd(), address->get(), address->length), 0);

  connect(to, std::chrono::milliseconds(50));

  ASSERT_FALSE(outcome->has_value());
  EXPECT_EQ(error().code, iscsi::Errc::timed_out);
}

TEST_F(TcpSockets, AnAbandonedAttemptIsNotHeardOfAnyMore) {
  listen("127.0.0.1");
  Endpoint to = endpoint("127.0.0.1");
  to.port = port_of(listener->local());
  bool told = false;
  attempt = connector.connect(to, std::chrono::seconds(10), [&](auto) { told = true; });
  attempt.reset();
  attempt =
      connector.connect(endpoint("nonsense"), std::chrono::seconds(10), [&](auto) { told = true; });
  attempt.reset();
  EXPECT_TRUE(run_until([&] { return accepted.size() == 1; }));
  EXPECT_FALSE(told);
}

TEST_F(TcpSockets, TheAttemptMayBeDestroyedFromInsideItsCallback) {
  listen("127.0.0.1");
  Endpoint to = endpoint("127.0.0.1");
  to.port = port_of(listener->local());
  bool told = false;
  attempt = connector.connect(to, std::chrono::seconds(10), [&](auto result) {
    attempt.reset();
    told = result.has_value();
  });
  EXPECT_TRUE(run_until([&] { return told; }));
}

TEST_F(TcpSockets, TheSourceAddressIsUsed) {
  listen("127.0.0.1");
  Endpoint to = endpoint("127.0.0.1");
  to.source_address = "127.0.0.77";
  connect(to);
  ASSERT_TRUE(outcome->has_value()) << error().text;
  ASSERT_TRUE(run_until([&] { return accepted.size() == 1; }));
  EXPECT_EQ(accepted[0].peer_address, "127.0.0.77");
}

TEST_F(TcpSockets, ASourceAddressOfNoInterfaceIsNamed) {
  listen("127.0.0.1");
  Endpoint to = endpoint("127.0.0.1");
  to.source_address = "192.0.2.1";
  connect(to);
  ASSERT_FALSE(outcome->has_value());
  EXPECT_EQ(error().code, system_code(EADDRNOTAVAIL));
  EXPECT_NE(error().text.find("192.0.2.1"), std::string::npos);
}

TEST_F(TcpSockets, ASourceAddressOfTheOtherKindIsNamed) {
  listen("127.0.0.1");
  Endpoint to = endpoint("127.0.0.1");
  to.source_address = "::1";
  connect(to);
  ASSERT_FALSE(outcome->has_value());
  EXPECT_NE(error().text.find("::1"), std::string::npos);
}

TEST_F(TcpSockets, TheInterfaceIsUsedOrItIsSaidWhyNot) {
  listen("127.0.0.1");
  Endpoint to = endpoint("127.0.0.1");
  to.interface_name = "lo";
  connect(to);
  if (outcome->has_value()) return;
  EXPECT_EQ(error().code, system_code(EPERM));
  EXPECT_NE(error().text.find("CAP_NET_RAW"), std::string::npos);
}

TEST_F(TcpSockets, AnInterfaceThatDoesNotExistIsNamed) {
  listen("127.0.0.1");
  Endpoint to = endpoint("127.0.0.1");
  to.interface_name = "no-such-if";
  connect(to);
  ASSERT_FALSE(outcome->has_value());
  EXPECT_NE(error().text.find("no-such-if"), std::string::npos);
}

}  // namespace
}  // namespace vjbod::transport
