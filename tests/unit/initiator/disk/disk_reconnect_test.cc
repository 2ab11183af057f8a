// SPDX-License-Identifier: Apache-2.0
// A disk that loses its connection: what is replayed, what is refused, what fails and when.
#include <cerrno>

#include "initiator/session/supervisor_machine.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/initiator/disk/disk_fixture.h"

namespace vjbod::initiator {
namespace {

class DiskReconnect : public DiskFixture {};

TEST_F(DiskReconnect, ReplaysWhatWasUnderWayWithTheSameIsid) {
  connect();
  target.ignore = [](const auto&) { return true; };
  TestRequest& written = write(0, 512, A);
  reactor.run_until_idle();
  target.ignore = nullptr;

  sever();
  reactor.advance(1s);

  EXPECT_EQ(written.result, 0);
  EXPECT_TRUE(medium_is(0, 512, A));
  ASSERT_EQ(target.logins.size(), 2u);
  EXPECT_EQ(target.logins[0], target.logins[1]);
  EXPECT_EQ(disk->status().reconnects, 1u);
  EXPECT_EQ(disk->status().counters.replays, 1u);
}

TEST_F(DiskReconnect, AWriteWhoseResponseWasLostIsReplayed) {
  connect();
  network.links().back()->drop_next(iscsi::Opcode::scsi_response);
  TestRequest& written = write(0, 512, A);
  reactor.run_until_idle();
  ASSERT_FALSE(written.result.has_value());

  sever();
  reactor.advance(1s);

  EXPECT_EQ(written.result, 0);
  EXPECT_EQ(target.count<scsi::Write>(), 2u);
}

// Barrier 1: memory goes nowhere before the session has proven that it is done with it.
TEST_F(DiskReconnect, ReplaysOnlyAfterTheOldSessionHasClosed) {
  network.set_link_options({.placement = transport::DataPlacement::late});
  connect();
  network.links().back()->sever_during_next(iscsi::Opcode::data_in);
  target.medium.assign(target.medium.size(), A);
  TestRequest& got = read(0, 64 * 512);
  reactor.advance(1s);

  EXPECT_EQ(got.result, 0);
  EXPECT_EQ(got.memory, std::vector<std::byte>(64 * 512, A));
}

TEST_F(DiskReconnect, IssuesInTheOldOrderBeforeWhatCameLater) {
  connect();
  target.ignore = [](const auto&) { return true; };
  write(0, 512, A);
  write(512, 512, A);
  reactor.run_until_idle();
  target.ignore = nullptr;
  target.commands.clear();
  sever();
  write(1024, 512, A);
  reactor.advance(1s);

  std::vector<uint64_t> order;
  for (const scsi::Command& command : target.commands)
    if (const auto* w = std::get_if<scsi::Write>(&command)) order.push_back(w->lba);
  EXPECT_EQ(order, (std::vector<uint64_t>{0, 1, 2}));
}

TEST_F(DiskReconnect, WaitsThroughAnOutageWithoutAnError) {
  connect();
  target.stop();
  TestRequest& written = write(0, 512, A);
  reactor.advance(300s);
  EXPECT_FALSE(written.result.has_value());
  EXPECT_EQ(disk->status().state, DiskState::reconnecting);
  EXPECT_GE(disk->status().attempt, 10u);
  EXPECT_TRUE(disk->status().last_error.has_value());

  target.start();
  reactor.advance(31s);

  EXPECT_EQ(written.result, 0);
  EXPECT_EQ(disk->status().state, DiskState::connected);
}

TEST_F(DiskReconnect, FailsWhatWaitsAfterTheIoTimeoutAndRecoversLater) {
  connect();
  target.stop();
  TestRequest& early = write(0, 512, A);
  reactor.advance(590s);
  EXPECT_FALSE(early.result.has_value());
  reactor.advance(20s);
  EXPECT_EQ(early.result, EIO);
  TestRequest& late = write(0, 512, A);
  reactor.run_until_idle();
  EXPECT_EQ(late.result, EIO);

  target.start();
  reactor.advance(31s);
  TestRequest& after = write(0, 512, B);
  reactor.run_until_idle();

  EXPECT_EQ(after.result, 0);
  EXPECT_TRUE(medium_is(0, 512, B));
}

TEST_F(DiskReconnect, FailsAtOnceWhereThePolicySaysSo) {
  config.policy.on_loss = OnLoss::fail;
  connect();
  target.ignore = [](const auto&) { return true; };
  TestRequest& written = write(0, 512, A);
  reactor.run_until_idle();

  target.stop();
  reactor.run_until_idle();

  EXPECT_EQ(written.result, EIO);
}

TEST_F(DiskReconnect, AReconnectByRequestFailsNothingEvenWithThatPolicy) {
  config.policy.on_loss = OnLoss::fail;
  connect();
  TestRequest& before = write(0, 512, A);
  disk->reconnect();
  TestRequest& meanwhile = write(512, 512, A);
  reactor.advance(5s);

  EXPECT_EQ(before.result, 0);
  EXPECT_EQ(meanwhile.result, 0);
  EXPECT_EQ(target.logins.size(), 2u);
  EXPECT_EQ(target.logouts, 1u);
}

TEST_F(DiskReconnect, SurvivesASilentTarget) {
  connect();
  network.links().back()->stall(transport::Role::initiator);
  network.links().back()->stall(transport::Role::target);
  TestRequest& written = write(0, 512, A);

  reactor.advance(29s);
  EXPECT_FALSE(written.result.has_value());
  reactor.advance(10s);

  EXPECT_EQ(written.result, 0);
}

TEST_F(DiskReconnect, TakesAnotherPathWhenTheFirstIsGone) {
  config.paths.push_back({transport::Kind::memory, {"10.0.0.3", 3260, {}, {}}});
  test::FakeTarget second(reactor, network, "10.0.0.3");
  connect();
  target.stop();
  TestRequest& written = write(0, 512, A);

  reactor.advance(2s);

  EXPECT_EQ(written.result, 0);
  EXPECT_EQ(disk->status().portal, "10.0.0.3:3260");
  detach();
  second.stop();
  reactor.run_until_idle();
}

TEST_F(DiskReconnect, FollowsARedirection) {
  test::FakeTarget second(reactor, network, "10.0.0.9");
  target.login_status = 0x0101;
  target.redirect_to = "10.0.0.9:3260,1";

  connect();

  EXPECT_EQ(second.logins.size(), 1u);
  EXPECT_EQ(disk->status().portal, "10.0.0.9:3260");
  detach();
  second.stop();
  reactor.run_until_idle();
}

TEST_F(DiskReconnect, RefusedAuthenticationIsForAPersonAfterThreeTries) {
  connect();
  target.login_status = 0x0201;
  target.login_texts.clear();
  restart_target();
  run_to(DiskState::failed);
  EXPECT_EQ(target.login_texts.size(), misfits_max);
  EXPECT_THAT(disk->status().last_error->text, testing::HasSubstr("0x0201"));
  reactor.advance(300s);
  EXPECT_EQ(disk->status().state, DiskState::failed);

  target.login_status = 0;
  disk->connect();
  run_to(DiskState::connected);
}

TEST_F(DiskReconnect, WhatANewDiskIsRefusedWithIsToldAtOnce) {
  make_disk();
  for (const auto& [status, code] :
       {std::pair{0x0201, iscsi::Errc::authentication}, std::pair{0x0202, iscsi::Errc::not_allowed},
        std::pair{0x0203, iscsi::Errc::target_not_found}}) {
    target.login_status = static_cast<uint16_t>(status);
    target.login_texts.clear();
    disk->connect();

    run_to(DiskState::failed, 1s);

    EXPECT_EQ(target.login_texts.size(), 1u);
    EXPECT_EQ(disk->status().last_error->code, code);
  }
}

TEST_F(DiskReconnect, ANewDiskWithoutItsLunIsToldAtOnce) {
  target.refuse = [](const scsi::Command&) {
    return test::check_condition(scsi::SenseKey::illegal_request,
                                 scsi::asc::logical_unit_not_supported);
  };
  make_disk();
  disk->connect();

  run_to(DiskState::failed, 1s);

  EXPECT_EQ(disk->status().last_error->code, make_error_code(DiskErrc::not_a_disk));
}

TEST_F(DiskReconnect, WaitsForATargetThatHasYetToLearnOfItsLunsAndInitiators) {
  connect();
  TestRequest& written = write(0, 512, A);
  reactor.run_until_idle();
  for (uint16_t status : {uint16_t{0x0203}, uint16_t{0x0202}}) {
    target.login_status = status;
    restart_target();
    run_to(DiskState::reconnecting);
    reactor.advance(60s);
    EXPECT_EQ(disk->status().state, DiskState::reconnecting);
  }

  target.login_status = 0;
  run_to(DiskState::connected);

  EXPECT_EQ(written.result, 0);
}

TEST_F(DiskReconnect, GoesToMd5WhereNothingElseWorksAndStaysThere) {
  target.asks_for_chap = true;
  config.session.chap = iscsi::ChapCredentials{"host", iscsi::Secret("a secret of twelve")};
  config.session.chap_md5_retry = true;
  connect();
  EXPECT_THAT(target.login_texts, testing::Contains(testing::StartsWith("CHAP_A=7,")));
  EXPECT_THAT(target.login_texts,
              testing::Contains(testing::StartsWith(std::string("CHAP_A=5\0", 9))));
  target.login_texts.clear();

  restart_target();
  run_to(DiskState::connected);

  EXPECT_THAT(target.login_texts,
              testing::Not(testing::Contains(testing::StartsWith("CHAP_A=7,"))));
}

TEST_F(DiskReconnect, NeverGoesToMd5WithATargetOfOurs) {
  target.asks_for_chap = true;
  config.session.chap = iscsi::ChapCredentials{"host", iscsi::Secret("a secret of twelve")};
  make_disk();
  disk->connect();

  run_to(DiskState::failed);

  EXPECT_EQ(disk->status().last_error->code, iscsi::Errc::authentication);
  EXPECT_THAT(target.login_texts, testing::Not(testing::Contains(testing::StartsWith("CHAP_A=5"))));
}

TEST_F(DiskReconnect, ATargetThatRefusesTheDigestsIsNotTriedForEver) {
  connect();
  SessionConfig session;
  session.initiator_name = "iqn.2026-11.io.vjbod:host";
  session.target_name = "iqn.2026-11.io.vjbod:target";
  session.data_digest = iscsi::DigestWish::require;
  disk->set_session(std::move(session));  // a memory mover has none
  disk->reconnect();

  run_to(DiskState::failed);
}

// --- identity ---

TEST_F(DiskReconnect, SendsNotOneWriteToAnotherLun) {
  connect();
  target.ignore = [](const auto&) { return true; };
  TestRequest& written = write(0, 512, A);
  reactor.run_until_idle();
  target.ignore = nullptr;
  target.naa[15] = std::byte{0x01};
  restart_target();

  run_to(DiskState::stale);

  EXPECT_EQ(target.count<scsi::Write>(), 1u);  // the one before
  EXPECT_TRUE(medium_is(0, 512, std::byte{0}));
  EXPECT_FALSE(written.result.has_value());
  EXPECT_EQ(disk->status().last_error->code, make_error_code(DiskErrc::identity_mismatch));
  disk->reconnect();
  reactor.advance(60s);
  EXPECT_EQ(disk->status().state, DiskState::stale);
  reactor.advance(600s);
  EXPECT_EQ(written.result, EIO);
}

TEST_F(DiskReconnect, AStaleDiskGoesOnWhenItsLunIsBackAndAPersonSaysSo) {
  connect();
  target.serial = "another";
  restart_target();
  run_to(DiskState::stale);
  TestRequest& written = write(0, 512, A);
  target.serial = "serial-1";

  disk->connect();
  run_to(DiskState::connected);
  reactor.run_until_idle();

  EXPECT_EQ(written.result, 0);
}

TEST_F(DiskReconnect, AShrunkLunIsStale) {
  connect();
  target.medium.resize(1 << 19);
  restart_target();

  run_to(DiskState::stale);
}

TEST_F(DiskReconnect, AnotherBlockSizeIsStale) {
  connect();
  target.block_bytes = 4096;
  restart_target();

  run_to(DiskState::stale);
}

TEST_F(DiskReconnect, AGrownLunIsFollowed) {
  connect();
  target.medium.resize(2 << 20);
  restart_target();

  run_to(DiskState::connected);
  reactor.run_until_idle();

  EXPECT_EQ(disk->geometry().size_bytes, 2u << 20);
  EXPECT_EQ(geometries.back().size_bytes, 2u << 20);
}

TEST_F(DiskReconnect, RefusesALunThatIsNotTheOneItWasMadeFor) {
  config.identity = DiskIdentity{"naa.other", "serial-1", 1 << 20, 512};
  make_disk();
  disk->connect();

  run_to(DiskState::stale);
}

TEST_F(DiskReconnect, ForgettingTheIdentityDropsWhatWasMeantForTheOldLun) {
  connect();
  target.serial = "another";
  restart_target();
  run_to(DiskState::stale);
  TestRequest& meant_for_the_old = write(0, 512, A);

  disk->forget_identity();
  disk->connect();
  run_to(DiskState::connected);
  reactor.run_until_idle();

  EXPECT_EQ(meant_for_the_old.result, EIO);
  EXPECT_TRUE(medium_is(0, 512, std::byte{0}));
  EXPECT_EQ(identity->serial, "another");
}

TEST_F(DiskReconnect, ExportsWhatItKnewBeforeTheTargetAnswers) {
  BlockGeometry known;
  known.size_bytes = 1 << 20;
  config.geometry = known;
  config.identity = DiskIdentity{"naa.6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a", "serial-1", 1 << 20, 512};
  make_disk();
  ASSERT_TRUE(disk->geometry_known());
  disk->connect();
  TestRequest& written = write(0, 512, A);

  run_to(DiskState::connected);
  reactor.run_until_idle();

  EXPECT_EQ(written.result, 0);
}

// --- barrier 3: the lost cache ---

TEST_F(DiskReconnect, FailsLoudlyWhenTheTargetsMachineWasRestartedWithUnflushedWrites) {
  connect();
  write(0, 512, A);
  reactor.run_until_idle();
  target.cache_id = "22222222-2222-2222-2222-222222222222";
  restart_target();
  TestRequest& waiting = write(512, 512, A);

  run_to(DiskState::failed);
  reactor.run_until_idle();
  TestRequest& later = read(0, 512);
  reactor.run_until_idle();

  EXPECT_EQ(waiting.result, EIO);
  EXPECT_EQ(later.result, EIO);
  EXPECT_EQ(disk->status().last_error->code, make_error_code(DiskErrc::writes_lost));
  EXPECT_TRUE(medium_is(512, 512, std::byte{0}));
}

TEST_F(DiskReconnect, GoesOnAfterARestartOfTheMachineWhenAllWasFlushed) {
  connect();
  write(0, 512, A);
  reactor.run_until_idle();
  flush();
  reactor.run_until_idle();
  target.cache_id = "22222222-2222-2222-2222-222222222222";
  restart_target();
  TestRequest& waiting = write(512, 512, A);

  run_to(DiskState::connected);
  reactor.run_until_idle();

  EXPECT_EQ(waiting.result, 0);
}

TEST_F(DiskReconnect, ATargetThatTellsItsCacheNoLongerIsTakenToHaveLostIt) {
  connect();
  write(0, 512, A);
  reactor.run_until_idle();
  target.cache_id.clear();
  restart_target();

  run_to(DiskState::failed);
}

TEST_F(DiskReconnect, TheSamePageOfAnotherVendorMeansNothing) {
  target.vendor = "ACME";
  connect();
  write(0, 512, A);
  reactor.run_until_idle();
  target.cache_id = "22222222-2222-2222-2222-222222222222";
  restart_target();

  run_to(DiskState::connected);
}

TEST_F(DiskReconnect, ATargetThatNeverToldItsCacheIsTrusted) {
  target.cache_id.clear();
  connect();
  write(0, 512, A);
  reactor.run_until_idle();
  restart_target();

  run_to(DiskState::connected);
}

TEST_F(DiskReconnect, GoesOnAfterARestartOfTheProcessAlone) {
  connect();
  write(0, 512, A);
  reactor.run_until_idle();

  restart_target();
  run_to(DiskState::connected);
}

TEST_F(DiskReconnect, NoticesAHalfDoneRequestWhoseFirstHalfIsLostWithTheCache) {
  target.transfer_blocks_max = 1;
  connect();
  target.ignore = [](const scsi::Command& command) {
    const auto* w = std::get_if<scsi::Write>(&command);
    return w != nullptr && w->lba == 1;
  };
  TestRequest& written = write(0, 1024, A);
  reactor.run_until_idle();
  ASSERT_FALSE(written.result.has_value());
  target.ignore = nullptr;
  target.cache_id = "22222222-2222-2222-2222-222222222222";
  restart_target();

  run_to(DiskState::failed);
  reactor.run_until_idle();

  EXPECT_EQ(written.result, EIO);
}

TEST_F(DiskReconnect, ARestartOfTheDaemonHidesNoLoss) {
  config.unflushed.set_cache_id("11111111-1111-1111-1111-111111111111");
  config.unflushed.write_completed();
  target.cache_id = "22222222-2222-2222-2222-222222222222";
  make_disk();
  disk->connect();
  run_to(DiskState::failed);

  EXPECT_EQ(disk->status().last_error->code, make_error_code(DiskErrc::writes_lost));
  EXPECT_EQ(read(0, 512).result, std::nullopt);
  reactor.run_until_idle();
  EXPECT_EQ(requests.back().result, EIO);
}

TEST_F(DiskReconnect, ARestartOfTheDaemonAloneIsNoLoss) {
  config.unflushed.set_cache_id(target.cache_id);
  config.unflushed.write_completed();
  connect();
  EXPECT_TRUE(disk->status().unflushed_writes);
  flush();
  reactor.run_until_idle();
  EXPECT_FALSE(disk->status().unflushed_writes);
}

TEST_F(DiskReconnect, ALossStaysKnownUntilAPersonAcceptsIt) {
  test::TempDir dir;
  const auto record = [&] { return *UnflushedRecord::open(dir / "record", "boot"); };
  config.unflushed = record();
  connect();
  write(0, 512, A);
  reactor.run_until_idle();
  target.cache_id = "22222222-2222-2222-2222-222222222222";
  restart_target();
  run_to(DiskState::failed);
  EXPECT_EQ(record().unflushed(), 1U);
  EXPECT_NE(record().cache_id(), target.cache_id);

  disk->connect();
  run_to(DiskState::connected);
  EXPECT_EQ(record().unflushed(), 0U);
  EXPECT_EQ(record().cache_id(), target.cache_id);
}

TEST_F(DiskReconnect, APersonMayAcceptTheLoss) {
  connect();
  write(0, 512, A);
  reactor.run_until_idle();
  target.cache_id = "22222222-2222-2222-2222-222222222222";
  restart_target();
  run_to(DiskState::failed);

  disk->connect();
  run_to(DiskState::connected);
  TestRequest& written = write(0, 512, A);
  reactor.run_until_idle();

  EXPECT_EQ(written.result, 0);
}

// --- the end ---

TEST_F(DiskReconnect, DetachEndsEverythingWithinFiveSecondsOfADeadTarget) {
  connect();
  target.ignore = [](const auto&) { return true; };
  TestRequest& issued = write(0, 512, A);
  reactor.run_until_idle();
  network.links().back()->stall(transport::Role::initiator);
  network.links().back()->stall(transport::Role::target);
  TestRequest& queued = write(512, 512, A);

  detach();

  EXPECT_EQ(issued.result, ESHUTDOWN);
  EXPECT_EQ(queued.result, ESHUTDOWN);
}

TEST_F(DiskReconnect, DetachLetsTheLastWriteIn) {
  connect();
  network.links().back()->set_delay(transport::Role::target, 500ms);
  TestRequest& written = write(0, 512, A);
  reactor.run_until_idle();

  detach();

  EXPECT_EQ(written.result, 0);
  EXPECT_EQ(target.logouts, 1u);
}

TEST_F(DiskReconnect, DetachWorksFromEveryState) {
  make_disk();
  detach();
  disk.reset();

  detached = false;
  config.paths = {{transport::Kind::memory, {"10.0.0.2", 3260, {}, {}}}};
  network.set_answer(transport::MemoryNetwork::Answer::hang);
  make_disk();
  disk->connect();
  reactor.run_until_idle();
  detach();
  disk.reset();

  detached = false;
  network.set_answer(transport::MemoryNetwork::Answer::refuse);
  config.paths = {{transport::Kind::memory, {"10.0.0.2", 3260, {}, {}}}};
  make_disk();
  disk->connect();
  reactor.advance(3s);
  detach();
}

TEST_F(DiskReconnect, ADetachedDiskRefusesRequests) {
  connect();
  detach();

  TestRequest& late = write(0, 512, A);
  reactor.run_until_idle();

  EXPECT_EQ(late.result, ESHUTDOWN);
}

TEST_F(DiskReconnect, DisconnectKeepsRequestsWaitingAndStaysAway) {
  connect();
  disk->disconnect();
  run_to(DiskState::disconnected);
  TestRequest& written = write(0, 512, A);
  reactor.advance(60s);
  EXPECT_EQ(target.logins.size(), 1u);
  EXPECT_FALSE(written.result.has_value());

  disk->connect();
  run_to(DiskState::connected);
  reactor.run_until_idle();

  EXPECT_EQ(written.result, 0);
}

TEST_F(DiskReconnect, TellsThatAnotherHostHasTheLun) {
  connect();

  disk->take_over({iscsi::Errc::login_refused, "nas9 took the disk over"});
  run_to(DiskState::taken_over);

  EXPECT_EQ(disk->status().last_error->text, "nas9 took the disk over");
}

// --- liveness ---

TEST_F(DiskReconnect, AnswersEveryRequestExactlyOnceThroughManyFlaps) {
  connect();
  Random random(7);
  std::map<uint64_t, std::byte> last;
  for (int flap = 0; flap < 100; ++flap) {
    for (int i = 0; i < 20; ++i) {
      const uint64_t block = static_cast<uint64_t>(flap * 20 + i) % 2048;
      const auto fill = static_cast<std::byte>(random.next());
      write(block * 512, 512, fill);
      last[block] = fill;
    }
    if (random.chance(1, 3)) flush();
    reactor.advance(Duration(random.below(3'000'000)));
    if (random.chance(1, 4))
      restart_target(Duration(random.below(5'000'000'000)));
    else
      sever();
    reactor.advance(Duration(random.below(2'000'000'000)));
  }

  reactor.run_until([&] { return answered == requests.size(); }, 120s);

  for (const TestRequest& request : requests) EXPECT_EQ(request.result, 0);
  for (const auto& [block, fill] : last) EXPECT_TRUE(medium_is(block * 512, 512, fill));
}

}  // namespace
}  // namespace vjbod::initiator
