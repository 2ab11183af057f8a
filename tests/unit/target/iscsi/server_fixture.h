// SPDX-License-Identifier: Apache-2.0
// A target server with one target on a test backstore, and peers that log in and then send whatever
// PDU a test wants. One reactor, no real time.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/iscsi/errc.h"
#include "common/iscsi/pdu_codec.h"
#include "common/runtime/manual_reactor.h"
#include "common/scsi/cdb.h"
#include "common/transport/memory/memory_data_mover.h"
#include "initiator/session/login_machine.h"
#include "target/iscsi/target_server.h"
#include "tests/unit/target/scsi/test_backstore.h"

namespace vjbod::target::test {

constexpr std::string_view box_name = "iqn.2024-01.com.example:box";
constexpr std::string_view host_name = "iqn.2024-01.com.example:host";
constexpr std::string_view other_host_name = "iqn.2024-01.com.example:other";

// Everybody is let in, but for one who may be barred.
struct OpenAccess final : AccessTable {
  LoginDecision decide(const LoginIdentity& identity) const override {
    LoginDecision decision;
    decision.access = identity.initiator_name == barred ? LoginDecision::Access::forbidden
                                                        : LoginDecision::Access::allowed;
    decision.sole_nexus = sole;
    return decision;
  }
  std::vector<std::string> targets_of(std::string_view) const override {
    return {std::string(box_name)};
  }
  bool sole = false;
  std::string_view barred;
};

class Peer final : transport::DataMoverEvents {
 public:
  struct Options {
    std::string_view name = host_name;
    std::string_view target = box_name;
    uint8_t isid = 1;
    uint16_t tsih = 0;
    uint16_t cid = 0;
    const iscsi::ChapCredentials* chap = nullptr;
  };
  Peer(std::unique_ptr<transport::DataMover> mover, const Options& options)
      : mover_(std::move(mover)), tsih_(options.tsih) {
    initiator::LoginSettings settings;
    settings.initiator_name = options.name;
    settings.target_name = options.target;
    settings.isid = {std::byte{0x80}, std::byte{options.isid}};
    settings.cid = options.cid;
    if (options.chap != nullptr) settings.chap = options.chap->copy();
    settings.cmd_sn = SerialNumber(100);
    settings.fill_random = fill_secure_random;
    login_.emplace(std::move(settings));
    mover_->start(*this);
    take(login_->start());
  }

  bool logged_in() const { return login_->state() == initiator::LoginState::done; }
  iscsi::LoginStatus refused_with() const { return login_->failure().status; }
  uint16_t tsih() const { return login_->result().tsih; }
  bool closed() const { return closed_; }
  void close() {
    if (!closed_) mover_->terminate({iscsi::Errc::closed_locally, "the test closed it"});
  }

  // With the next CmdSN.
  void send(iscsi::Pdu pdu, ConstBytes data = {}) {
    iscsi::stamp_cmd_sn(pdu, cmd_sn_);
    if (!iscsi::is_immediate(pdu)) ++cmd_sn_;
    iscsi::stamp_exp_stat_sn(pdu, exp_stat_sn_);
    mover_->send_control(pdu, data);
  }
  void write(uint64_t lba, char fill) {
    std::vector<std::byte>& block = blocks_.emplace_back(512, static_cast<std::byte>(fill));
    iscsi::ScsiCommand command;
    command.itt = next_itt_++;
    command.write = true;
    command.expected_data_transfer_length = 512;
    command.cdb = scsi::encode(scsi::Write{.lba = lba, .blocks = 1});
    begin(command, block);
  }
  // TEST UNIT READY, for the unit attention.
  void look() {
    iscsi::ScsiCommand command;
    command.itt = next_itt_++;
    command.cdb = scsi::encode(scsi::TestUnitReady{});
    begin(command, {});
  }
  void log_out() {
    iscsi::LogoutRequest request;
    request.itt = next_itt_++;
    send(request);
  }

  template <typename Pdu>
  size_t count() const {
    return static_cast<size_t>(std::count_if(received.begin(), received.end(), [](const auto& pdu) {
      return std::holds_alternative<Pdu>(pdu);
    }));
  }
  std::vector<iscsi::Pdu> received;  // in full feature phase
  bool answers_pings = true;

 private:
  void begin(iscsi::ScsiCommand& command, ConstBytes data) {
    command.cmd_sn = cmd_sn_;
    ++cmd_sn_;
    command.exp_stat_sn = exp_stat_sn_;
    mover_->begin_task(command, data, {});
  }
  void take(initiator::LoginStep step) {
    if (!step.request) return;
    step.request->tsih = tsih_;
    mover_->send_control(*step.request, as_bytes(step.data));
  }
  void on_control(const transport::ReceivedControl& control) override {
    if (!full_feature_) {
      take(login_->on_response(std::get<iscsi::LoginResponse>(control.pdu), control.data));
      if (!logged_in()) return;
      full_feature_ = true;
      cmd_sn_ = login_->result().cmd_sn;
      exp_stat_sn_ = login_->result().exp_stat_sn;
      mover_->enable_full_feature(login_->result().parameters, numbers_);
      return;
    }
    received.push_back(control.pdu);
    if (const auto* ping = std::get_if<iscsi::NopIn>(&control.pdu);
        ping != nullptr && ping->ttt != iscsi::reserved_tag && answers_pings) {
      iscsi::NopOut answer;
      answer.immediate = true;
      answer.itt = iscsi::reserved_tag;
      answer.ttt = ping->ttt;
      send(answer);
    }
  }
  void on_transfer_done(transport::TaskHandle) override {}
  void on_peer_alive() override {}
  void on_closed(const Error&) override { closed_ = true; }

  std::unique_ptr<transport::DataMover> mover_;
  std::optional<initiator::LoginMachine> login_;
  const uint16_t tsih_;
  bool full_feature_ = false, closed_ = false;
  transport::SequenceNumbers numbers_;
  SerialNumber cmd_sn_, exp_stat_sn_;
  uint32_t next_itt_ = 1000;
  std::list<std::vector<std::byte>> blocks_;
};

class ServerFixture : public testing::Test, protected ServerEvents {
 protected:
  explicit ServerFixture(ServerLimits limits = {}) : limits_(limits) { start_server(); }
  // A new one, after the shutdown of the old one.
  void start_server() {
    server_.emplace(reactor_, std::vector<SessionPlace>{{&reactor_, &buffers_}}, limits_,
                    static_cast<ServerEvents&>(*this));
    server_->set_access(std::make_shared<OpenAccess>(access_));
    server_->set_target({std::string(box_name), {{0, unit_, false}}});
    reactor_.run_until_idle();
  }
  ~ServerFixture() override {
    store_->release();
    for (Peer& peer : peers_) peer.close();
    bool down = false;
    server_->shutdown([&] { down = true; });
    EXPECT_TRUE(reactor_.run_until([&] { return down; }, std::chrono::seconds(60)));
    server_.reset();
    reactor_.run_until_idle();
  }

  void one_nexus_only() {
    access_.sole = true;
    server_->set_access(std::make_shared<OpenAccess>(access_));
  }
  void bar(std::string_view initiator) {
    access_.barred = initiator;
    server_->set_access(std::make_shared<OpenAccess>(access_));
  }
  // The first byte is sent; nothing has run yet.
  Peer& begin_login(const Peer::Options& options = {}) {
    transport::MemoryPair pair = transport::make_memory_pair(reactor_);
    links_.push_back(pair.link);
    const auto place = server_->reserve_place("10.0.0.1");
    server_->adopt(*place, "10.0.0.1", std::move(pair.target));
    return peers_.emplace_back(std::move(pair.initiator), options);
  }
  Peer& log_in(const Peer::Options& options = {}) {
    Peer& peer = begin_login(options);
    reactor_.run_until_idle();
    return peer;
  }
  // Logged in, and past the unit attention.
  Peer& ready_peer(const Peer::Options& options = {}) {
    Peer& peer = log_in(options);
    EXPECT_TRUE(peer.logged_in());
    peer.look();
    reactor_.run_until_idle();
    return peer;
  }
  // A write that the backstore has and does not carry out before release().
  void hold_write(Peer& peer, uint64_t lba, char fill) {
    store_->hold = true;
    peer.write(lba, fill);
    reactor_.run_until_idle();
    ASSERT_EQ(store_->held(), 1u);
    store_->hold = false;
  }
  char on_disk(uint64_t lba) const { return static_cast<char>(store_->bytes[lba * 512]); }
  transport::MemoryLink& newest_link() { return *links_.back(); }

  void on_session_opened(const SessionInfo&) override { ++opened_; }
  void on_session_closed(const SessionInfo&, const Error& reason) override {
    closed_with_.push_back(reason.text);
  }
  void on_login_failed(const std::string&, const Error& reason) override {
    failed_with_.push_back(reason.text);
  }

  const ServerLimits limits_;
  ManualReactor reactor_;
  BufferPool buffers_{size_t{4} << 20};
  std::shared_ptr<scsi::test::TestBackstore> store_ =
      std::make_shared<scsi::test::TestBackstore>(64);
  std::shared_ptr<scsi::LogicalUnit> unit_ =
      scsi::LogicalUnit::make({.uuid = {std::byte{7}}, .backstore = store_, .home = &reactor_});
  OpenAccess access_;
  std::optional<TargetServer> server_;
  std::list<Peer> peers_;
  std::vector<std::shared_ptr<transport::MemoryLink>> links_;
  int opened_ = 0;
  std::vector<std::string> closed_with_, failed_with_;
};

}  // namespace vjbod::target::test
