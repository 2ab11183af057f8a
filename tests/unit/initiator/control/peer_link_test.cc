// SPDX-License-Identifier: Apache-2.0
// The control channel against a peer that does not answer, over real sockets on the loopback.
#include "initiator/control/peer_link.h"

#include <atomic>

#include <gtest/gtest.h>

#include "common/rpc/errc.h"
#include "tests/unit/common/rpc/server_fixture.h"

namespace vjbod::initiator {
namespace {

// Ends when its caller gives up, and not before.
class Unanswered final : public grpc::ServerUnaryReactor {
 public:
  void OnCancel() override { Finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }
};

class SilentPeer final : public v1::TargetPeer::CallbackService {
 public:
  grpc::ServerUnaryReactor* ListPools(grpc::CallbackServerContext*, const v1::Empty*,
                                      v1::ListPoolsResponse*) override {
    if (++calls == 1) first_call.set_value();
    return new Unanswered;
  }
  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext*, const v1::DescribeRequest*,
                                     v1::DescribeResponse*) override {
    return new Unanswered;
  }
  std::atomic<int> calls = 0;
  std::promise<void> first_call;
};

class PeerLinkTest : public testing::Test, protected PeerLinkEvents {
 protected:
  PeerLinkTest() {
    auto started = thread_.run([&] {
      return rpc::PeerServer::start(thread_.reactor(), "127.0.0.1:0", theirs_, {&peer_});
    });
    EXPECT_TRUE(started) << started.error().text;
    server_ = std::move(*started);
    PeerRecord record;
    record.name = "nas2";
    record.address = "127.0.0.1";
    record.port = server_->port();
    record.fingerprint = theirs_.fingerprint;
    thread_.run([&] {
      PeerLinkEvents& events = *this;
      link_ = std::make_unique<PeerLink>(thread_.reactor(), ours_, record, events);
    });
  }
  ~PeerLinkTest() override {
    thread_.stop(*server_);
    server_.reset();
  }
  void on_peer_event(const std::string&, const v1::Event&) override {}
  void on_peer_reachable(const std::string&, bool) override {}

  // On the reactor.
  void call() {
    link_->call<v1::Empty, v1::ListPoolsResponse>(
        &PeerLink::Service::Stub::async_interface::ListPools, v1::Empty(), std::chrono::seconds(20),
        [this](Result<v1::ListPoolsResponse> pools) {
          ASSERT_FALSE(pools);
          answers_.push_back(pools.error());
        });
  }
  // Closes the link and destroys it as soon as that is allowed.
  void close() {
    std::promise<void> closed;
    thread_.run([&] {
      link_->close({rpc::Errc::daemon_not_running, "the test is over"}, [&] {
        link_.reset();
        closed.set_value();
      });
    });
    closed.get_future().wait();
  }

  const rpc::Identity ours_ = *rpc::make_identity("nas1"), theirs_ = *rpc::make_identity("nas2");
  SilentPeer peer_;
  rpc::ReactorThread thread_;
  std::unique_ptr<rpc::PeerServer> server_;
  std::unique_ptr<PeerLink> link_;
  std::vector<Error> answers_;  // on the reactor
};

TEST_F(PeerLinkTest, WhoWaitsForAnAnswerHearsWhyThereWillBeNone) {
  thread_.run([this] { call(); });
  peer_.first_call.get_future().wait();

  close();

  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0].code, rpc::Errc::daemon_not_running);
  EXPECT_EQ(answers_[0].text, "the test is over");
}

TEST_F(PeerLinkTest, AClosedLinkAnswersEveryCallOnceHoweverFarItHadCome) {
  thread_.run([this] {
    link_->watch();
    for (int i = 0; i < 40; ++i) call();
  });

  close();

  EXPECT_EQ(answers_.size(), 40u);
}

TEST_F(PeerLinkTest, ACallThatComesAfterTheEndIsAnsweredToo) {
  std::promise<void> closed;
  thread_.run([&] {
    link_->close({rpc::Errc::daemon_not_running, "the test is over"}, [&] { closed.set_value(); });
    call();
  });
  closed.get_future().wait();
  thread_.run([this] { link_.reset(); });

  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0].text, "the test is over");
}

}  // namespace
}  // namespace vjbod::initiator
