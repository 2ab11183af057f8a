// SPDX-License-Identifier: Apache-2.0
// Calls that wait for sessions to end, whose last command is still at the disk.
#include <list>

#include "common/rpc/errc.h"
#include "tests/unit/target/control/manager_fixture.h"
#include "tests/unit/target/control/services_fixture.h"
#include "tests/unit/target/iscsi/server_fixture.h"

namespace vjbod::target {
namespace {

using test::Peer;

constexpr const char* esx_iqn = "iqn.1998-01.com.vmware:esx1";

std::shared_ptr<scsi::LogicalUnit> unit_on(std::shared_ptr<scsi::test::TestBackstore> store,
                                           Reactor& home) {
  return scsi::LogicalUnit::make(
      {.uuid = {std::byte{7}}, .backstore = std::move(store), .home = &home});
}

// A session with a write that stays at the disk.
class HeldWriteTest : public ManagerFixture {
 protected:
  HeldWriteTest() {
    EXPECT_TRUE(luns_->create(specification("disk1")));
    iqn_ = record("disk1").target_iqn;
  }
  void hold_a_write(const Peer::Options& options) {
    serving_->set_target({iqn_, {{0, unit_on(store_of_lun_, *reactor_), false}}});
    reactor_->run_until_idle();
    log_in(peer_, options);
    peer_->look();
    store_of_lun_->hold = true;
    peer_->write(0, 'o');
    reactor_->run_until_idle();
    EXPECT_EQ(store_of_lun_->held(), 1u);
  }
  ~HeldWriteTest() override {
    peer_->close();
    release();
  }
  void release() {
    store_of_lun_->release();
    reactor_->run_until_idle();
  }
  void log_in(std::optional<Peer>& peer, const Peer::Options& options) {
    transport::MemoryPair pair = transport::make_memory_pair(*reactor_);
    server_->adopt(*server_->reserve_place("10.0.0.1"), "10.0.0.1", std::move(pair.target));
    peer.emplace(std::move(pair.initiator), options);
    reactor_->run_until_idle();
  }
  // Its outcome is in answer_, once it has one.
  template <typename Operation>
  void begin(Operation operation) {
    answer_.reset();
    operation([this](Status status) { answer_ = std::move(status); });
    reactor_->run_until_idle();
  }

  std::string iqn_;
  std::shared_ptr<scsi::test::TestBackstore> store_of_lun_ =
      std::make_shared<scsi::test::TestBackstore>(64);
  std::optional<Peer> peer_;
  std::optional<Status> answer_;
};

class WaitingCallTest : public HeldWriteTest {
 protected:
  WaitingCallTest() {
    EXPECT_TRUE(access_->add_initiator({esx_iqn, {}, {}}));
    EXPECT_TRUE(access_->allow(esx_iqn, "disk1"));
    hold_a_write({.name = esx_iqn, .target = iqn_});
  }
  void deny() {
    begin([&](auto done) { access_->deny(esx_iqn, "disk1", done); });
  }
  SessionId only_session() {
    std::vector<SessionInfo> sessions;
    serving_->list_sessions([&](auto all) { sessions = std::move(all); });
    reactor_->run_until_idle();
    EXPECT_EQ(sessions.size(), 1u);
    return sessions.at(0).id;
  }
};

TEST_F(WaitingCallTest, ACallReturnsWhenTheLastCommandOfTheOldSessionIsOver) {
  deny();
  EXPECT_TRUE(peer_->closed());
  EXPECT_FALSE(answer_);
  release();
  ASSERT_TRUE(answer_);
  EXPECT_TRUE(*answer_) << answer_->error().text;
}

TEST_F(WaitingCallTest, OrSaysAfterItsDeadlineThatItStillLasts) {
  deny();
  reactor_->advance(Serving::end_deadline);
  ASSERT_TRUE(answer_);
  ASSERT_FALSE(*answer_);
  EXPECT_EQ(answer_->error().code, rpc::Errc::timeout);
  EXPECT_TRUE(AccessManager::in_force(*answer_));
  EXPECT_TRUE(record("disk1").allowed_initiators.empty());

  deny();
  EXPECT_FALSE(answer_) << "asked again it waits again";
  release();
  ASSERT_TRUE(answer_);
  EXPECT_TRUE(*answer_);
}

TEST_F(WaitingCallTest, TheEndOfOneSessionHasADeadlineToo) {
  const SessionId session = only_session();
  auto kill = [&](auto done) {
    serving_->end_session(session, {iscsi::Errc::closed_locally, "a test"}, done);
  };
  begin(kill);
  EXPECT_TRUE(peer_->closed());
  EXPECT_FALSE(answer_);
  reactor_->advance(Serving::end_deadline);
  ASSERT_TRUE(answer_ && !*answer_);
  EXPECT_EQ(answer_->error().code, rpc::Errc::timeout);
  EXPECT_NE(answer_->error().text.find(fmt::format("session {} was told to end", session)),
            std::string::npos)
      << answer_->error().text;

  begin(kill);
  EXPECT_FALSE(answer_) << "asked again it waits again";
  release();
  EXPECT_TRUE(answer_ && *answer_);
  begin(kill);
  ASSERT_TRUE(answer_ && !*answer_);
  EXPECT_EQ(answer_->error().code, rpc::Errc::not_found);
}

TEST_F(WaitingCallTest, ADeletionThatWaitsTooLongLeavesTheLunAsItWas) {
  auto remove = [&](auto done) { luns_->remove("disk1", done); };
  begin(remove);
  EXPECT_FALSE(answer_);
  reactor_->advance(Serving::end_deadline);
  ASSERT_TRUE(answer_ && !*answer_);
  EXPECT_EQ(answer_->error().code, rpc::Errc::busy);
  EXPECT_NE(answer_->error().text.find("commands at the disk"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(file_of("disk1")));
  std::optional<Peer> next;
  log_in(next, {.name = esx_iqn, .target = iqn_});
  release();
  EXPECT_TRUE(next->logged_in()) << "it is served again";

  begin(remove);
  reactor_->run_until([&] { return answer_.has_value(); }, std::chrono::seconds(60));
  EXPECT_TRUE(answer_ && *answer_);
  EXPECT_FALSE(exists("disk1"));
  EXPECT_EQ(files(), 0u);
}

class PairedSessionTest : public HeldWriteTest {
 protected:
  PairedSessionTest() {
    EXPECT_TRUE(pair_as("iqn.2026-11.io.vjbod:nas1"));
    EXPECT_TRUE(wait([&](auto done) { access_->bind("disk1", "nas1", done); }));
    chap_ = binding().chap.copy();
    hold_a_write({.name = "iqn.2026-11.io.vjbod:nas1", .target = iqn_, .chap = &chap_});
  }
  Status pair_as(std::string iqn) {
    PairedHost host;
    host.name = "nas1";
    host.fingerprint.bytes.fill(std::byte{1});
    host.initiator_iqn = std::move(iqn);
    Status added = access_->add_host(host);
    reactor_->run_until_idle();
    return added;
  }
  const LunBinding& binding() { return *record("disk1").binding; }

  iscsi::ChapCredentials chap_;
};

TEST_F(PairedSessionTest, PairingAgainLeavesItAsItIs) {
  ASSERT_TRUE(pair_as("iqn.2026-11.io.vjbod:nas1"));
  EXPECT_FALSE(peer_->closed());
  EXPECT_TRUE(binding().chap.secret.same_as(chap_.secret));
}

TEST_F(PairedSessionTest, AnotherInitiatorNameEndsItAndTakesItsSecrets) {
  ASSERT_TRUE(pair_as("iqn.2026-11.io.vjbod:other"));
  EXPECT_TRUE(peer_->closed());
  EXPECT_EQ(binding().host, "nas1");
  EXPECT_EQ(binding().chap.user, "iqn.2026-11.io.vjbod:other");
  EXPECT_FALSE(binding().chap.secret.same_as(chap_.secret));
}

TEST_F(PairedSessionTest, UnpairingWaitsForTheSessionsOfAnOldInitiatorName) {
  ASSERT_TRUE(pair_as("iqn.2026-11.io.vjbod:other"));
  begin([&](auto done) { access_->remove_host("nas1", done); });
  EXPECT_FALSE(answer_);
  EXPECT_TRUE(peer_->closed());
  release();
  EXPECT_TRUE(answer_ && *answer_);
}

class CallsMeetTest : public ServicesTest {
 protected:
  // A session of a foreign initiator, with a write that stays at the disk until release().
  void hold_a_session() {
    v1::CreateLunRequest lun;
    lun.set_name("disk1");
    lun.set_pool("tank");
    lun.set_size_bytes(1 << 20);
    v1::Lun made;
    ASSERT_FALSE(call(*admin_, &v1::TargetAdmin::Stub::CreateLun, lun, &made));
    iqn_ = made.target_iqn();
    v1::AddInitiatorRequest initiator;
    initiator.set_iqn(esx_iqn);
    v1::Initiator added;
    ASSERT_FALSE(call(*admin_, &v1::TargetAdmin::Stub::AddInitiator, initiator, &added));
    ASSERT_FALSE(call(*admin_, &v1::TargetAdmin::Stub::AllowInitiator, esx_and_lun(), &added));
    on_reactor([this] {
      server_->set_target({iqn_, {{0, unit_on(store_of_lun_, reactor_), false}}});
      transport::MemoryPair pair = transport::make_memory_pair(reactor_);
      server_->adopt(*server_->reserve_place("10.0.0.1"), "10.0.0.1", std::move(pair.target));
      session_.emplace(std::move(pair.initiator), Peer::Options{.name = esx_iqn, .target = iqn_});
    });
    until([this] { return session_->logged_in(); });
    on_reactor([this] {
      session_->look();
      store_of_lun_->hold = true;
      session_->write(0, 'o');
    });
    until([this] { return store_of_lun_->held() == 1; });
  }
  void release() {
    on_reactor([this] { store_of_lun_->release(); });
  }
  ~CallsMeetTest() override {
    until([this] { return !session_ || session_->closed(); });
    on_reactor([this] { session_.reset(); });
  }
  void until(const std::function<bool()>& true_on_reactor) {
    for (;;) {
      bool holds = false;
      on_reactor([&] { holds = true_on_reactor(); });
      if (holds) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  template <typename Request, typename Response>
  std::future<std::optional<Errc>> in_background(
      grpc::Status (v1::TargetAdmin::Stub::*method)(grpc::ClientContext*, const Request&,
                                                    Response*),
      Request request) {
    return std::async(std::launch::async, [this, method, request = std::move(request)] {
      Response response;
      return call(*admin_, method, request, &response);
    });
  }
  static v1::InitiatorLunRequest esx_and_lun() {
    v1::InitiatorLunRequest request;
    request.set_iqn(esx_iqn);
    request.set_lun("disk1");
    return request;
  }

  std::string iqn_;
  std::shared_ptr<scsi::test::TestBackstore> store_of_lun_ =
      std::make_shared<scsi::test::TestBackstore>(64);
  std::optional<Peer> session_;
};

TEST_F(CallsMeetTest, AnInitiatorRemovedWhileAnotherCallWaitsIsAnAnswer) {
  hold_a_session();
  auto denied = in_background(&v1::TargetAdmin::Stub::DenyInitiator, esx_and_lun());
  until([this] { return store_->state().luns.at("disk1").allowed_initiators.empty(); });
  v1::NameRequest name;
  name.set_name(esx_iqn);
  auto removed = in_background(&v1::TargetAdmin::Stub::RemoveInitiator, name);
  until([this] { return store_->state().initiators.empty(); });
  release();
  EXPECT_EQ(denied.get(), Errc::not_found);
  EXPECT_EQ(removed.get(), std::nullopt);
}

TEST_F(CallsMeetTest, ALunUnboundAndDeletedWhileOthersWaitForItIsAnAnswer) {
  pair_host();
  hold_a_session();
  auto denied = in_background(&v1::TargetAdmin::Stub::DenyInitiator, esx_and_lun());
  until([this] { return store_->state().luns.at("disk1").allowed_initiators.empty(); });
  v1::OpenLunRequest open;
  open.set_lun("disk1");
  auto opened = std::async(std::launch::async, [&] {
    v1::LunAccess access;
    return call(*peer_, &v1::TargetPeer::Stub::OpenLun, open, &access);
  });
  until([this] { return store_->state().luns.at("disk1").binding.has_value(); });
  v1::LunRequest lun;
  lun.set_lun("disk1");
  auto unbound = in_background(&v1::TargetAdmin::Stub::UnbindLun, lun);
  until([this] { return !store_->state().luns.at("disk1").binding; });
  auto deleted = in_background(&v1::TargetAdmin::Stub::DeleteLun, lun);
  release();
  EXPECT_EQ(opened.get(), Errc::bound_to_another_host) << "unbound while it waited";
  EXPECT_EQ(denied.get(), std::nullopt);
  EXPECT_EQ(unbound.get(), std::nullopt);
  EXPECT_EQ(deleted.get(), std::nullopt);
}

}  // namespace
}  // namespace vjbod::target
