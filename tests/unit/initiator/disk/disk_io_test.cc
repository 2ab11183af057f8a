// SPDX-License-Identifier: Apache-2.0
// Requests of a disk that stays connected.
#include <cerrno>

#include "tests/unit/initiator/disk/disk_fixture.h"

namespace vjbod::initiator {
namespace {

using scsi::SenseKey;

class DiskIo : public DiskFixture {};

TEST_F(DiskIo, LearnsGeometryAndIdentity) {
  connect();

  ASSERT_TRUE(identity.has_value());
  EXPECT_EQ(identity->serial, "serial-1");
  EXPECT_EQ(identity->naa, "naa.6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a");
  EXPECT_EQ(identity->size_bytes, 1u << 20);
  ASSERT_EQ(geometries.size(), 1u);
  EXPECT_TRUE(geometries[0].volatile_cache);
  EXPECT_TRUE(geometries[0].trim);
  EXPECT_TRUE(geometries[0].fast_write_zeroes);
}

TEST_F(DiskIo, ReadsWhatItWrote) {
  connect();

  TestRequest& written = write(4096, 8192, A);
  reactor.run_until_idle();
  TestRequest& got = read(4096, 8192);
  reactor.run_until_idle();

  EXPECT_EQ(written.result, 0);
  EXPECT_EQ(got.result, 0);
  EXPECT_EQ(got.memory, written.memory);
}

TEST_F(DiskIo, AnswersNothingFromInsideSubmit) {
  connect();

  TestRequest& cache = submit(BlockOperation::cache, 0, 512);
  EXPECT_FALSE(cache.result.has_value());
  reactor.run_until_idle();

  EXPECT_EQ(cache.result, 0);
}

TEST_F(DiskIo, SplitsWhatTheTargetCannotTakeAtOnce) {
  target.transfer_blocks_max = 8;
  connect();

  TestRequest& written = write(512, 40 * 512, A);
  reactor.run_until_idle();

  EXPECT_EQ(written.result, 0);
  EXPECT_EQ(target.count<scsi::Write>(), 5u);
  EXPECT_TRUE(medium_is(512, 40 * 512, A));
  EXPECT_TRUE(medium_is(41 * 512, 512, std::byte{0}));
}

TEST_F(DiskIo, TakesMoreRequestsThanItHasSlots) {
  connect();
  std::vector<TestRequest*> all;
  for (uint64_t i = 0; i < 100; ++i) all.push_back(&write(i * 512, 512, A));

  reactor.run_until_idle();

  for (TestRequest* request : all) EXPECT_EQ(request->result, 0);
  EXPECT_TRUE(medium_is(0, 100 * 512, A));
}

TEST_F(DiskIo, RefusesWhatIsUnalignedOrOutside) {
  connect();

  TestRequest& unaligned = read(1, 512);
  TestRequest& outside = read(1 << 20, 512);
  TestRequest& wrapping = submit(BlockOperation::trim, ~uint64_t{511}, 1024);
  reactor.run_until_idle();

  EXPECT_EQ(unaligned.result, EINVAL);
  EXPECT_EQ(outside.result, EIO);
  EXPECT_EQ(wrapping.result, EIO);
}

TEST_F(DiskIo, ForcesUnitAccessNatively) {
  connect();
  TestRequest& request = requests.emplace_back();
  request.operation = BlockOperation::write;
  request.force_unit_access = true;
  request.length_bytes = 512;
  request.memory.resize(512);
  request.data = request.memory;
  request.owner = &request;
  request.answered = &answered;

  disk->submit(request);
  reactor.run_until_idle();

  EXPECT_TRUE(std::get<scsi::Write>(target.commands.back()).force_unit_access);
  EXPECT_EQ(target.count<scsi::SynchronizeCache>(), 0u);
  EXPECT_FALSE(disk->status().unflushed_writes);
}

TEST_F(DiskIo, FlushesAfterAForcedWriteWhereTheTargetHasNoForceUnitAccess) {
  target.dpo_and_fua = false;
  connect();
  TestRequest& request = requests.emplace_back();
  request.operation = BlockOperation::write;
  request.force_unit_access = true;
  request.length_bytes = 512;
  request.memory.resize(512);
  request.data = request.memory;
  request.owner = &request;
  request.answered = &answered;

  disk->submit(request);
  reactor.run_until_idle();

  EXPECT_EQ(request.result, 0);
  EXPECT_TRUE(std::holds_alternative<scsi::SynchronizeCache>(target.commands.back()));
}

TEST_F(DiskIo, FlushesOnceForAllPiecesOfAForcedWrite) {
  target.dpo_and_fua = false;
  target.transfer_blocks_max = 1;
  connect();
  TestRequest& request = requests.emplace_back();
  request.operation = BlockOperation::write;
  request.force_unit_access = true;
  request.length_bytes = 4096;
  request.memory.resize(4096);
  request.data = request.memory;
  request.owner = &request;
  request.answered = &answered;

  disk->submit(request);
  reactor.run_until_idle();

  EXPECT_EQ(target.count<scsi::Write>(), 8u);
  EXPECT_EQ(target.count<scsi::SynchronizeCache>(), 1u);
  EXPECT_FALSE(disk->status().unflushed_writes);
}

TEST_F(DiskIo, KnowsWhatIsNotFlushed) {
  connect();
  write(0, 512, A);
  reactor.run_until_idle();
  EXPECT_TRUE(disk->status().unflushed_writes);

  flush();
  reactor.run_until_idle();

  EXPECT_FALSE(disk->status().unflushed_writes);
}

TEST_F(DiskIo, AWriteAnsweredAfterTheFlushWasIssuedIsNotCoveredByIt) {
  connect();
  int held = 0;
  target.ignore = [&](const scsi::Command& command) {
    return std::holds_alternative<scsi::SynchronizeCache>(command) && ++held == 1;
  };
  flush();
  reactor.run_until_idle();
  const uint32_t flush_itt = target.connection()->last_command_itt();
  write(0, 512, A);
  reactor.run_until_idle();

  iscsi::ScsiResponse late;
  late.itt = flush_itt;
  target.connection()->send(late);
  reactor.run_until_idle();

  EXPECT_EQ(requests.front().result, 0);
  EXPECT_TRUE(disk->status().unflushed_writes);
}

TEST_F(DiskIo, AFailedFlushIsNeverASuccessLater) {
  connect();
  write(0, 512, A);
  reactor.run_until_idle();
  target.refuse = [](const scsi::Command& command) -> std::optional<test::Reply> {
    if (!std::holds_alternative<scsi::SynchronizeCache>(command)) return std::nullopt;
    return test::check_condition(SenseKey::medium_error, scsi::asc::write_error);
  };
  TestRequest& failed = flush();
  reactor.run_until_idle();
  target.refuse = nullptr;

  TestRequest& again = flush();
  reactor.run_until_idle();

  EXPECT_EQ(failed.result, EIO);
  EXPECT_EQ(again.result, EIO);
}

TEST_F(DiskIo, APersonCanAcceptAFailedFlushWhileTheDiskIsConnected) {
  connect();
  target.refuse = [](const scsi::Command& command) -> std::optional<test::Reply> {
    if (!std::holds_alternative<scsi::SynchronizeCache>(command)) return std::nullopt;
    return test::check_condition(SenseKey::medium_error, scsi::asc::write_error);
  };
  flush();
  reactor.run_until_idle();
  target.refuse = nullptr;
  disk->connect();

  TestRequest& again = flush();
  reactor.run_until_idle();

  EXPECT_EQ(again.result, 0);
}

TEST_F(DiskIo, APersonCanConnectAnewAfterAFailedFlush) {
  connect();
  target.refuse = [](const scsi::Command& command) -> std::optional<test::Reply> {
    if (!std::holds_alternative<scsi::SynchronizeCache>(command)) return std::nullopt;
    return test::check_condition(SenseKey::medium_error, scsi::asc::write_error);
  };
  flush();
  reactor.run_until_idle();
  target.refuse = nullptr;
  disk->disconnect();
  run_to(DiskState::disconnected);
  disk->connect();
  run_to(DiskState::connected);

  TestRequest& again = flush();
  reactor.run_until_idle();

  EXPECT_EQ(again.result, 0);
}

TEST_F(DiskIo, TrimsAndZeroes) {
  connect();
  write(0, 8192, A);
  reactor.run_until_idle();

  TestRequest& trimmed = submit(BlockOperation::trim, 0, 4096);
  TestRequest& zeroed = submit(BlockOperation::write_zeroes, 4096, 4096);
  reactor.run_until_idle();

  EXPECT_EQ(trimmed.result, 0);
  EXPECT_EQ(zeroed.result, 0);
  EXPECT_TRUE(medium_is(0, 8192, std::byte{0}));
  EXPECT_EQ(target.count<scsi::WriteSame>(), 1u);
  EXPECT_EQ(target.count<scsi::Unmap>(), 1u);
}

TEST_F(DiskIo, SendsZerosToATargetThatHasNoWriteSame) {
  target.has_write_same = false;
  connect();
  write(0, 8192, A);
  reactor.run_until_idle();

  TestRequest& zeroed = submit(BlockOperation::write_zeroes, 0, 8192);
  reactor.run_until_idle();

  EXPECT_EQ(zeroed.result, 0);
  EXPECT_TRUE(medium_is(0, 8192, std::byte{0}));
  EXPECT_EQ(target.count<scsi::WriteSame>(), 0u);
}

TEST_F(DiskIo, SaysAtOnceThatZerosAreNotFast) {
  target.has_write_same = false;
  connect();
  TestRequest& request = requests.emplace_back();
  request.operation = BlockOperation::write_zeroes;
  request.fast_only = true;
  request.length_bytes = 512;
  request.owner = &request;
  request.answered = &answered;

  disk->submit(request);
  reactor.run_until_idle();

  EXPECT_EQ(request.result, EOPNOTSUPP);
  EXPECT_EQ(target.count<scsi::Write>(), 0u);
}

TEST_F(DiskIo, SendsNoZerosForWhatMustBeFastWhenWriteSameTurnsOutToBeMissing) {
  connect();
  target.has_write_same = false;
  TestRequest& fast = requests.emplace_back();
  fast.operation = BlockOperation::write_zeroes;
  fast.fast_only = true;
  fast.length_bytes = 512;
  fast.owner = &fast;
  fast.answered = &answered;

  disk->submit(fast);
  TestRequest& any = submit(BlockOperation::write_zeroes, 512, 512);
  reactor.run_until_idle();

  EXPECT_EQ(fast.result, EOPNOTSUPP);
  EXPECT_EQ(any.result, 0);
  EXPECT_EQ(target.count<scsi::Write>(), 1u);
}

TEST_F(DiskIo, FallsBackToZerosWhenWriteSameTurnsOutToBeMissing) {
  connect();
  write(0, 1 << 20, A);
  reactor.run_until_idle();
  target.has_write_same = false;

  TestRequest& zeroed = submit(BlockOperation::write_zeroes, 0, 1 << 20);
  reactor.run_until_idle();

  EXPECT_EQ(zeroed.result, 0);
  EXPECT_TRUE(medium_is(0, 1 << 20, std::byte{0}));
}

TEST_F(DiskIo, WorksWithATargetThatTellsNearlyNothing) {
  target.has_vpd = target.has_capacity_16 = target.has_mode_sense = target.has_opcode_report =
      false;
  target.has_write_same = target.has_unmap = false;
  connect();

  TestRequest& written = write(0, 512, A);
  TestRequest& trimmed = submit(BlockOperation::trim, 0, 512);
  TestRequest& zeroed = submit(BlockOperation::write_zeroes, 512, 512);
  reactor.run_until_idle();

  EXPECT_EQ(written.result, 0);
  EXPECT_EQ(trimmed.result, EOPNOTSUPP);
  EXPECT_EQ(zeroed.result, 0);
  EXPECT_TRUE(disk->geometry().volatile_cache);
}

TEST_F(DiskIo, WaitsForABusyTarget) {
  connect();
  int busy = 3;
  target.refuse = [&](const scsi::Command&) -> std::optional<test::Reply> {
    if (busy-- > 0) return test::Reply{scsi::Status::task_set_full, {}};
    return std::nullopt;
  };

  TestRequest& written = write(0, 512, A);
  reactor.run_until_idle();
  EXPECT_FALSE(written.result.has_value());
  reactor.advance(2s);

  EXPECT_EQ(written.result, 0);
}

TEST_F(DiskIo, GivesUpOnATargetThatIsBusyForLongerThanTheIoTimeout) {
  config.policy.io_timeout = 60s;
  connect();
  target.refuse = [&](const scsi::Command&) { return test::Reply{scsi::Status::busy, {}}; };

  TestRequest& written = write(0, 512, A);
  reactor.advance(70s);

  EXPECT_EQ(written.result, EIO);
}

TEST_F(DiskIo, TakesUnitAttentionsInItsStride) {
  connect();
  int attentions = 3;
  target.refuse = [&](const scsi::Command&) -> std::optional<test::Reply> {
    if (attentions-- > 0)
      return test::check_condition(SenseKey::unit_attention, scsi::asc::power_on_or_reset);
    return std::nullopt;
  };

  TestRequest& written = write(0, 512, A);
  reactor.run_until_idle();

  EXPECT_EQ(written.result, 0);
}

TEST_F(DiskIo, FollowsTheGrowthOfTheLun) {
  connect();
  target.medium.resize(2 << 20);
  bool told = false;
  target.refuse = [&](const scsi::Command&) -> std::optional<test::Reply> {
    if (std::exchange(told, true)) return std::nullopt;
    return test::check_condition(SenseKey::unit_attention, scsi::asc::capacity_changed);
  };

  TestRequest& written = write(0, 512, A);
  reactor.run_until_idle();

  EXPECT_EQ(written.result, 0);
  ASSERT_EQ(geometries.size(), 2u);
  EXPECT_EQ(geometries[1].size_bytes, 2u << 20);
  EXPECT_EQ(identity->size_bytes, 2u << 20);
  EXPECT_EQ(disk->status().state, DiskState::connected);
  EXPECT_EQ(disk->status().reconnects, 0u);
}

TEST_F(DiskIo, RefusesWritesToAWriteProtectedLun) {
  target.write_protected = true;
  connect();

  TestRequest& written = write(0, 512, A);
  reactor.run_until_idle();

  EXPECT_EQ(written.result, EROFS);
}

TEST_F(DiskIo, NeverCallsAShortReadASuccess) {
  connect();
  target.distort_response = [](iscsi::ScsiResponse& response, auto&) {
    response.underflow = true;
    response.residual_count = 1;
  };

  TestRequest& got = read(0, 512);
  reactor.run_until_idle();

  EXPECT_EQ(got.result, EIO);
}

TEST_F(DiskIo, OneFailedPieceFailsTheWholeRequestOnce) {
  target.transfer_blocks_max = 1;
  connect();
  target.refuse = [&](const scsi::Command& command) -> std::optional<test::Reply> {
    const auto* read_command = std::get_if<scsi::Read>(&command);
    if (read_command == nullptr || read_command->lba != 5) return std::nullopt;
    return test::check_condition(SenseKey::medium_error, scsi::asc::unrecovered_read_error);
  };

  TestRequest& got = read(0, 100 * 512);
  reactor.run_until_idle();

  EXPECT_EQ(got.result, EIO);
  EXPECT_LT(target.count<scsi::Read>(), 100u);
}

TEST_F(DiskIo, CountsWhatItDid) {
  connect();
  write(0, 4096, A);
  read(0, 512);
  reactor.run_until_idle();

  const DiskCounters counters = disk->status().counters;
  EXPECT_EQ(counters.of(BlockOperation::write).operations, 1u);
  EXPECT_EQ(counters.of(BlockOperation::write).bytes, 4096u);
  EXPECT_EQ(counters.of(BlockOperation::read).bytes, 512u);
}

}  // namespace
}  // namespace vjbod::initiator
