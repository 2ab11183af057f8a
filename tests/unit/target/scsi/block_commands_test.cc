// SPDX-License-Identifier: Apache-2.0
#include "common/scsi/capacity.h"
#include "common/scsi/unmap_list.h"
#include "target/scsi/limits.h"
#include "target/scsi/scratch.h"
#include "tests/unit/target/scsi/nexus_fixture.h"

namespace vjbod::scsi::test {
namespace {

using backstore::OpKind;

class BlockCommands : public NexusFixture {
 protected:
  std::vector<std::byte> stored(uint64_t lba, uint64_t count) const {
    return {store->bytes.begin() + static_cast<std::ptrdiff_t>(lba * 512),
            store->bytes.begin() + static_cast<std::ptrdiff_t>((lba + count) * 512)};
  }
  std::vector<std::byte> list(const std::vector<UnmapRange>& ranges) const {
    std::vector<std::byte> bytes(unmap_list_bytes(ranges.size()));
    ByteWriter out(bytes);
    build_unmap_list(ranges, out);
    return bytes;
  }
  TestTask& unmap(const std::vector<UnmapRange>& ranges) {
    auto bytes = list(ranges);
    const auto length = static_cast<uint16_t>(bytes.size());
    return run_write(Unmap{.parameter_list_length = length}, std::move(bytes));
  }
};

// --- SYNCHRONIZE CACHE, START STOP UNIT ---

TEST_F(BlockCommands, SynchronizeCacheFlushes) {
  for (const CdbSize size : {CdbSize::ten, CdbSize::sixteen}) {
    EXPECT_EQ(run(SynchronizeCache{.size = size}).ending(), "GOOD");
  }
  EXPECT_EQ(store->count(OpKind::flush), 2U);
}

TEST_F(BlockCommands, SynchronizeCacheBeyondTheEndIsOutOfRange) {
  EXPECT_EQ(run(SynchronizeCache{.lba = blocks, .blocks = 1}).ending(), "05/21/00");
  EXPECT_EQ(run(SynchronizeCache{.lba = blocks - 1, .blocks = 1}).ending(), "GOOD");
}

TEST_F(BlockCommands, AFlushThatFailedFailsForEverFromThenOn) {
  store->fail_next = {OpKind::flush, EIO};
  EXPECT_EQ(run(SynchronizeCache{}).ending(), "03/0c/00");
  EXPECT_EQ(unit->flush_error(), system_code(EIO));

  EXPECT_EQ(run(SynchronizeCache{}).ending(), "03/0c/00");
  EXPECT_EQ(run_write(Write{.force_unit_access = true, .blocks = 1}, filled(512, 1)).ending(),
            "03/0c/00");
  EXPECT_EQ(store->count(OpKind::flush), 1U);
  EXPECT_EQ(run_write(Write{.blocks = 1}, filled(512, 1)).ending(), "GOOD");
}

TEST_F(BlockCommands, AFlushThatEndsWellAfterAnotherFailedIsNoSuccess) {
  store->hold = true;
  TestTask& first = run(SynchronizeCache{});
  TestTask& second = run(SynchronizeCache{});
  store->fail_next = {OpKind::flush, ENOSPC};
  store->release();
  reactor.run_until_idle();
  EXPECT_EQ(first.ending(), "07/27/07");
  EXPECT_EQ(second.ending(), "07/27/07");
}

TEST_F(BlockCommands, AShortageDuringAFlushIsNotHeldAgainstTheUnit) {
  store->fail_next = {OpKind::flush, ENOMEM};
  EXPECT_EQ(run(SynchronizeCache{}).ending(), "BUSY");
  EXPECT_EQ(run(SynchronizeCache{}).ending(), "GOOD");
}

TEST_F(BlockCommands, StoppingTheUnitFlushesItAndLeavesItReady) {
  EXPECT_EQ(run(StartStopUnit{.start = false}).ending(), "GOOD");
  EXPECT_EQ(store->count(OpKind::flush), 1U);
  EXPECT_EQ(run(StartStopUnit{.no_flush = true, .start = false}).ending(), "GOOD");
  EXPECT_EQ(run(StartStopUnit{.start = true}).ending(), "GOOD");
  EXPECT_EQ(store->count(OpKind::flush), 1U);
  EXPECT_EQ(run(TestUnitReady{}).ending(), "GOOD");
  EXPECT_EQ(run(StartStopUnit{.load_eject = true}).ending(), "05/24/00");
  EXPECT_EQ(run(StartStopUnit{.power_condition = 1}).ending(), "05/24/00");
}

// --- VERIFY ---

TEST_F(BlockCommands, VerifyWithoutDataReadsTheMedium) {
  const uint32_t count = 2 * Scratch::bytes / 512 + 1;
  EXPECT_EQ(run(Verify{.size = CdbSize::twelve, .lba = 1, .blocks = count}).ending(), "GOOD");
  EXPECT_EQ(store->count(OpKind::read), 3U);
  store->fail_next = {OpKind::read, EIO};
  EXPECT_EQ(run(Verify{.lba = 0, .blocks = 1}).ending(), "03/11/00");
}

TEST_F(BlockCommands, VerifyComparesEveryByteWithTheData) {
  store->bytes = numbered(store->bytes.size());
  for (const CdbSize size : {CdbSize::ten, CdbSize::twelve, CdbSize::sixteen}) {
    const Verify verify{.size = size, .byte_check = 1, .lba = 2, .blocks = 1000};
    auto data = stored(2, 1000);
    const TestTask& equal = run_write(verify, data);
    EXPECT_EQ(equal.ending(), "GOOD");
    EXPECT_EQ(equal.got_bytes, data.size());
    data.back() ^= std::byte{1};
    EXPECT_EQ(run_write(verify, data).ending(), "0e/1d/00");
  }
}

TEST_F(BlockCommands, VerifyComparesEveryBlockWithTheOneOfTheData) {
  std::fill(store->bytes.begin(), store->bytes.end(), std::byte{5});
  const Verify verify{.byte_check = 3, .lba = 0, .blocks = 100};
  EXPECT_EQ(run_write(verify, filled(512, 5)).ending(), "GOOD");
  store->bytes[99 * 512 + 511] = std::byte{6};
  EXPECT_EQ(run_write(verify, filled(512, 5)).ending(), "0e/1d/00");
}

TEST_F(BlockCommands, VerifyRefusesWhatItCannotDo) {
  EXPECT_EQ(run(Verify{.byte_check = 2, .blocks = 1}).ending(), "05/24/00");
  EXPECT_EQ(run(Verify{.protect = 1, .blocks = 1}).ending(), "05/24/00");
  EXPECT_EQ(run(Verify{.lba = blocks, .blocks = 1}).ending(), "05/21/00");
  EXPECT_EQ(run_write(Verify{.byte_check = 1, .blocks = 2}, filled(512, 0)).ending(), "05/0e/03");
  EXPECT_EQ(run(Verify{.byte_check = 1, .lba = blocks, .blocks = 0}).ending(), "GOOD");
  EXPECT_EQ(run(Verify{.byte_check = 1, .lba = blocks + 1, .blocks = 0}).ending(), "05/21/00");
}

TEST_F(BlockCommands, VerifiesShareOnePieceOfMemoryInTurn) {
  store->hold = true;
  TestTask& first = run(Verify{.lba = 0, .blocks = 1});
  TestTask& second = run(Verify{.lba = 0, .blocks = 1});
  EXPECT_EQ(store->held(), 1U);
  store->release();
  reactor.run_until_idle();
  EXPECT_EQ(first.ending(), "GOOD");
  EXPECT_EQ(second.ending(), "GOOD");
}

// --- WRITE SAME ---

TEST_F(BlockCommands, WriteSameRepeatsItsBlock) {
  const uint32_t count = 2 * Scratch::bytes / 512 + 3;
  const auto pattern = numbered(512);
  const TestTask& task = run_write(WriteSame{.lba = 4, .blocks = count}, pattern);
  EXPECT_EQ(task.ending(), "GOOD");
  EXPECT_EQ(task.outcome->actual_data_bytes, 512U);
  EXPECT_EQ(stored(3, 1), filled(512, 0));
  for (uint64_t i = 0; i < count; ++i) ASSERT_EQ(stored(4 + i, 1), pattern) << i;
  EXPECT_EQ(stored(4 + count, 1), filled(512, 0));
}

TEST_F(BlockCommands, WriteSameOfZerosIsOneOperationOfTheBackstore) {
  std::fill(store->bytes.begin(), store->bytes.end(), std::byte{5});
  const WriteSame same{.size = CdbSize::ten, .lba = 1, .blocks = 2};
  EXPECT_EQ(run_write(same, filled(512, 0)).ending(), "GOOD");
  EXPECT_EQ(store->kinds, (std::vector{OpKind::write_zeroes}));
  EXPECT_EQ(stored(1, 2), filled(1024, 0));
  EXPECT_EQ(stored(3, 1), filled(512, 5));
}

TEST_F(BlockCommands, WriteSameWithoutDataWritesZeros) {
  std::fill(store->bytes.begin(), store->bytes.end(), std::byte{5});
  EXPECT_EQ(run(WriteSame{.unmap = true, .no_data_out = true, .lba = 1, .blocks = 2}).ending(),
            "GOOD");
  EXPECT_EQ(stored(1, 2), filled(1024, 0));
}

TEST_F(BlockCommands, WriteSameTakesExactlyOneBlock) {
  for (const size_t size : {0, 256, 1024}) {
    EXPECT_EQ(run_write(WriteSame{.blocks = 1}, filled(size, 1)).ending(), "05/0e/03");
  }
  EXPECT_TRUE(store->kinds.empty());
}

TEST_F(BlockCommands, WriteSameRefusesWhatItCannotDo) {
  const auto ending = [&](const WriteSame& same) {
    return run_write(same, filled(512, 1)).ending();
  };
  EXPECT_EQ(ending({.protect = 1, .blocks = 1}), "05/24/00");
  EXPECT_EQ(ending({.anchor = true, .blocks = 1}), "05/24/00");
  EXPECT_EQ(ending({.blocks = 0}), "05/24/00");
  EXPECT_EQ(ending({.lba = blocks, .blocks = 1}), "05/21/00");
  store->capabilities_.unmap = false;
  open();
  EXPECT_EQ(ending({.unmap = true, .blocks = 1}), "05/24/00");
  EXPECT_EQ(ending({.unmap = false, .blocks = 1}), "GOOD");
}

// --- UNMAP ---

TEST_F(BlockCommands, UnmapGivesBackEveryRange) {
  std::fill(store->bytes.begin(), store->bytes.end(), std::byte{5});
  const TestTask& task = unmap({{1, 2}, {100, 0}, {200, 3}});
  EXPECT_EQ(task.ending(), "GOOD");
  EXPECT_EQ(task.outcome->actual_data_bytes, unmap_list_bytes(3));
  EXPECT_EQ(store->kinds, (std::vector{OpKind::unmap, OpKind::unmap}));
  EXPECT_EQ(stored(1, 2), filled(1024, 0));
  EXPECT_EQ(stored(200, 3), filled(3 * 512, 0));
  EXPECT_EQ(stored(3, 197), filled(197 * 512, 5));
}

TEST_F(BlockCommands, UnmapOfNothingIsGood) {
  EXPECT_EQ(unmap({}).ending(), "GOOD");
  EXPECT_EQ(unmap({{blocks, 0}}).ending(), "GOOD");
  EXPECT_EQ(run(Unmap{.parameter_list_length = 0}).ending(), "GOOD");
  EXPECT_TRUE(store->kinds.empty());
}

TEST_F(BlockCommands, UnmapTouchesNothingWhenOneRangeIsWrong) {
  EXPECT_EQ(unmap({{0, 1}, {blocks - 1, 2}}).ending(), "05/21/00");
  EXPECT_EQ(unmap({{0, 1}, {~uint64_t{0}, 2}}).ending(), "05/21/00");
  EXPECT_TRUE(store->kinds.empty());
}

TEST_F(BlockCommands, UnmapObeysTheLimitsThatItReports) {
  EXPECT_EQ(unmap(std::vector<UnmapRange>(unmap_descriptors_max, {0, 1})).ending(), "GOOD");
  EXPECT_EQ(unmap(std::vector<UnmapRange>(unmap_descriptors_max + 1, {0, 1})).ending(), "05/26/00");
  const auto most = static_cast<uint32_t>(unmap_blocks_max / 128);
  EXPECT_EQ(unmap(std::vector<UnmapRange>(128, {0, most})).ending(), "GOOD");
  EXPECT_EQ(unmap(std::vector<UnmapRange>(129, {0, most})).ending(), "05/26/00");
}

TEST_F(BlockCommands, UnmapRefusesABrokenList) {
  EXPECT_EQ(run_write(Unmap{.parameter_list_length = 7}, filled(7, 0)).ending(), "05/1a/00");
  EXPECT_EQ(run_write(Unmap{.parameter_list_length = 24}, filled(23, 0)).ending(), "05/0e/03");
  EXPECT_EQ(run_write(Unmap{.parameter_list_length = 24}, filled(24, 0xff)).ending(), "05/26/00");
  EXPECT_EQ(run_write(Unmap{.anchor = true, .parameter_list_length = 24}, list({{0, 1}})).ending(),
            "05/24/00");
}

TEST_F(BlockCommands, UnmapDoesNotExistWhereTheBackstoreCannot) {
  store->capabilities_.unmap = false;
  open();
  EXPECT_EQ(unmap({{0, 1}}).ending(), "05/20/00");
}

TEST_F(BlockCommands, AReadOnlyUnitRefusesEveryCommandThatWrites) {
  open(true);
  EXPECT_EQ(run_write(WriteSame{.blocks = 1}, filled(512, 0)).ending(), "07/27/00");
  EXPECT_EQ(run(WriteSame{.unmap = true, .blocks = 1}).ending(), "07/27/00");
  EXPECT_EQ(unmap({{0, 1}}).ending(), "07/27/00");
  EXPECT_EQ(run(SynchronizeCache{}).ending(), "GOOD");
}

// --- READ CAPACITY ---

TEST_F(BlockCommands, BothCapacitiesTellTheSize) {
  const TestTask& ten = run_read(ReadCapacity10{}, 8);
  EXPECT_EQ(parse_capacity_10(ten.data_in)->blocks, blocks);
  const TestTask& sixteen = run_read(ReadCapacity16{.allocation_length = 32}, 32);
  EXPECT_EQ(parse_capacity_16(sixteen.data_in).value(), (Capacity{.blocks = blocks,
                                                                  .block_bytes = 512,
                                                                  .physical_block_exponent = 3,
                                                                  .provisioning_management = true,
                                                                  .unmapped_reads_zeros = true}));
}

TEST_F(BlockCommands, CapacityDataIsCutToTheAllocationLength) {
  for (const uint32_t length : {0, 12, 31}) {
    const TestTask& task = run_read(ReadCapacity16{.allocation_length = length}, 32);
    EXPECT_EQ(task.ending(), "GOOD");
    EXPECT_EQ(task.data_in.size(), length);
    EXPECT_EQ(task.outcome->actual_data_bytes, length);
  }
}

}  // namespace
}  // namespace vjbod::scsi::test
