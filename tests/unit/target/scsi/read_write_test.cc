// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/limits.h"
#include "tests/unit/target/scsi/nexus_fixture.h"

namespace vjbod::scsi::test {
namespace {

using backstore::OpKind;

class ReadWrite : public NexusFixture {
 protected:
  std::vector<std::byte> stored(uint64_t lba, uint64_t count) const {
    return {store->bytes.begin() + static_cast<std::ptrdiff_t>(lba * 512),
            store->bytes.begin() + static_cast<std::ptrdiff_t>((lba + count) * 512)};
  }
};

TEST_F(ReadWrite, AReadReturnsWhatAWriteStored) {
  const auto data = numbered(4 * 512);
  EXPECT_EQ(run_write(Write{.lba = 5, .blocks = 4}, data).ending(), "GOOD");

  const TestTask& read = run_read(Read{.lba = 5, .blocks = 4}, 4 * 512);

  EXPECT_EQ(read.ending(), "GOOD");
  EXPECT_EQ(read.data_in, data);
  EXPECT_EQ(read.outcome->actual_data_bytes, 4 * 512U);
}

TEST_F(ReadWrite, EveryCdbLengthReadsAndWrites) {
  for (const CdbSize size : {CdbSize::six, CdbSize::ten, CdbSize::twelve, CdbSize::sixteen}) {
    const auto data = filled(512, static_cast<unsigned>(size));
    EXPECT_EQ(run_write(Write{.size = size, .lba = 9, .blocks = 1}, data).ending(), "GOOD");
    EXPECT_EQ(run_read(Read{.size = size, .lba = 9, .blocks = 1}, 512).data_in, data);
  }
}

TEST_F(ReadWrite, ATransferLargerThanTheBufferGoesThroughInPieces) {
  const auto data = numbered(3 * task_buffer_bytes_max + 512);
  const auto count = static_cast<uint32_t>(data.size() / 512);
  EXPECT_EQ(run_write(Write{.lba = 1, .blocks = count}, data).ending(), "GOOD");
  EXPECT_EQ(store->count(OpKind::write), 4U);

  const TestTask& read = run_read(Read{.lba = 1, .blocks = count}, data.size());

  EXPECT_EQ(read.ending(), "GOOD");
  EXPECT_TRUE(read.data_in == data);
}

TEST_F(ReadWrite, AReadSendsNoMoreThanTheInitiatorHasRoomFor) {
  store->bytes = numbered(store->bytes.size());
  for (const uint64_t expected : {0, 200, 512, 600, 1024}) {
    const TestTask& read = run_read(Read{.lba = 3, .blocks = 3}, expected);
    EXPECT_EQ(read.ending(), "GOOD") << expected;
    EXPECT_EQ(read.outcome->actual_data_bytes, 3 * 512U);
    auto wanted = stored(3, 3);
    wanted.resize(expected);
    EXPECT_EQ(read.data_in, wanted);
  }
}

TEST_F(ReadWrite, AReadForWhichMoreIsExpectedSendsWhatTheCdbSays) {
  const TestTask& read = run_read(Read{.lba = 0, .blocks = 1}, 10000);
  EXPECT_EQ(read.ending(), "GOOD");
  EXPECT_EQ(read.data_in.size(), 512U);
  EXPECT_EQ(read.outcome->actual_data_bytes, 512U);
}

TEST_F(ReadWrite, AWriteOfTooLittleDataWritesNothing) {
  for (const size_t expected : {0, 200, 512}) {
    const TestTask& write = run_write(Write{.lba = 0, .blocks = 2}, filled(expected, 0xbb));
    EXPECT_EQ(write.ending(), "05/0e/03");
    EXPECT_EQ(write.outcome->actual_data_bytes, 1024U);
    EXPECT_EQ(write.got_bytes, 0U);
  }
  EXPECT_EQ(stored(0, 2), filled(1024, 0));
}

TEST_F(ReadWrite, AWriteTakesNoMoreThanTheCdbSays) {
  const TestTask& write = run_write(Write{.lba = 0, .blocks = 1}, filled(2048, 0xbb));
  EXPECT_EQ(write.ending(), "GOOD");
  EXPECT_EQ(write.got_bytes, 512U);
  EXPECT_EQ(write.outcome->actual_data_bytes, 512U);
  EXPECT_EQ(stored(1, 1), filled(512, 0));
}

TEST_F(ReadWrite, AWriteWhoseTaskGoesTheOtherWayWritesNothing) {
  TestTask& write = submit(make(Write{.lba = 0, .blocks = 1}).expect_read(512));
  EXPECT_EQ(write.ending(), "05/0e/03");
  EXPECT_TRUE(write.data_in.empty());
  EXPECT_EQ(store->count(OpKind::write), 0U);
}

TEST_F(ReadWrite, TheLastBlockIsThereAndTheNextIsNot) {
  for (const CdbSize size : {CdbSize::ten, CdbSize::twelve, CdbSize::sixteen}) {
    EXPECT_EQ(run_read(Read{.size = size, .lba = blocks - 1, .blocks = 1}, 512).ending(), "GOOD");
    EXPECT_EQ(run_read(Read{.size = size, .lba = blocks, .blocks = 1}, 512).ending(), "05/21/00");
    EXPECT_EQ(run_read(Read{.size = size, .lba = blocks - 1, .blocks = 2}, 1024).ending(),
              "05/21/00");
    EXPECT_EQ(
        run_write(Write{.size = size, .lba = blocks - 1, .blocks = 2}, filled(1024, 1)).ending(),
        "05/21/00");
  }
}

TEST_F(ReadWrite, ARangeThatWrapsAroundIsOutOfRange) {
  const Read read{.size = CdbSize::sixteen, .lba = ~uint64_t{0}, .blocks = 2};
  EXPECT_EQ(run_read(read, 1024).ending(), "05/21/00");
}

TEST_F(ReadWrite, ZeroBlocksMoveNothingButTheirAddressIsChecked) {
  EXPECT_EQ(run(Read{.lba = blocks, .blocks = 0}).ending(), "GOOD");
  EXPECT_EQ(run(Read{.lba = blocks + 1, .blocks = 0}).ending(), "05/21/00");
  EXPECT_EQ(run(Write{.lba = blocks, .blocks = 0}).ending(), "GOOD");
  EXPECT_EQ(run(Write{.lba = blocks + 1, .blocks = 0}).ending(), "05/21/00");
  EXPECT_TRUE(store->kinds.empty());
}

TEST_F(ReadWrite, ProtectionInformationIsRefusedWithTheFieldNamed) {
  const TestTask& read = run_read(Read{.protect = 1, .lba = 0, .blocks = 1}, 512);
  EXPECT_EQ(read.ending(), "05/24/00");
  EXPECT_EQ(read.sense().field, (FieldPointer{.in_cdb = true, .byte = 1, .bit = 7}));
  EXPECT_EQ(run_write(Write{.protect = 7, .blocks = 1}, filled(512, 1)).ending(), "05/24/00");
}

TEST_F(ReadWrite, ATransferBeyondTheReportedMaximumIsRefused) {
  auto large = std::make_shared<TestBackstore>(2 * transfer_blocks_max);
  store = large;
  open();
  const auto most = transfer_blocks_max;
  EXPECT_EQ(run_read(Read{.size = CdbSize::sixteen, .blocks = most}, 0).ending(), "GOOD");
  const TestTask& more = run_read(Read{.size = CdbSize::sixteen, .blocks = most + 1}, 0);
  EXPECT_EQ(more.ending(), "05/24/00");
  EXPECT_EQ(more.sense().field, (FieldPointer{.in_cdb = true, .byte = 10, .bit = 7}));
}

TEST_F(ReadWrite, ForcedUnitAccessFlushesBeforeItAnswers) {
  run_write(Write{.force_unit_access = true, .lba = 0, .blocks = 1}, filled(512, 1));
  EXPECT_EQ(store->kinds, (std::vector{OpKind::write, OpKind::flush}));
  EXPECT_EQ(store->fua, (std::vector{false, false}));
}

TEST_F(ReadWrite, ForcedUnitAccessIsLeftToABackstoreThatHasIt) {
  store->capabilities_.native_fua = true;
  open();
  run_write(Write{.force_unit_access = true, .lba = 0, .blocks = 1}, filled(512, 1));
  EXPECT_EQ(store->kinds, (std::vector{OpKind::write}));
  EXPECT_EQ(store->fua, (std::vector{true}));
}

TEST_F(ReadWrite, ForcedUnitAccessNeedsNoFlushWithoutAVolatileCache) {
  store->capabilities_.volatile_cache = false;
  open();
  run_write(Write{.force_unit_access = true, .lba = 0, .blocks = 1}, filled(512, 1));
  EXPECT_EQ(store->kinds, (std::vector{OpKind::write}));
}

TEST_F(ReadWrite, AForcedReadFlushesFirst) {
  EXPECT_EQ(run_read(Read{.force_unit_access = true, .lba = 0, .blocks = 1}, 512).ending(), "GOOD");
  EXPECT_EQ(store->kinds, (std::vector{OpKind::flush, OpKind::read}));
}

TEST_F(ReadWrite, AFailedReadSendsNothingOfTheBuffer) {
  store->fail_next = {OpKind::read, EIO};
  const TestTask& read = run_read(Read{.lba = 0, .blocks = 1}, 512);
  EXPECT_EQ(read.ending(), "03/11/00");
  EXPECT_TRUE(read.data_in.empty());
  EXPECT_EQ(read.outcome->actual_data_bytes, 0U);
}

TEST_F(ReadWrite, ErrorsOfTheBackstoreBecomeTheSenseDataThatSaysWhy) {
  const auto write_failing_with = [&](int error) {
    store->fail_next = {OpKind::write, error};
    return run_write(Write{.lba = 0, .blocks = 1}, filled(512, 1)).ending();
  };
  EXPECT_EQ(write_failing_with(EIO), "03/0c/00");
  EXPECT_EQ(write_failing_with(ENOSPC), "07/27/07");
  EXPECT_EQ(write_failing_with(EDQUOT), "07/27/07");
  EXPECT_EQ(write_failing_with(EROFS), "07/27/00");
  EXPECT_EQ(write_failing_with(ENOMEM), "BUSY");
  EXPECT_EQ(write_failing_with(EINVAL), "04/44/00");
}

TEST_F(ReadWrite, AReadOnlyUnitRefusesToBeWritten) {
  open(true);
  EXPECT_EQ(run_write(Write{.lba = 0, .blocks = 1}, filled(512, 1)).ending(), "07/27/00");
  EXPECT_EQ(run_read(Read{.lba = 0, .blocks = 1}, 512).ending(), "GOOD");
  EXPECT_TRUE(store->kinds == std::vector{OpKind::read});
}

TEST_F(ReadWrite, BlocksOf4096BytesWorkAlike) {
  store = std::make_shared<TestBackstore>(64, 4096);
  open();
  const auto data = numbered(2 * 4096);
  EXPECT_EQ(run_write(Write{.lba = 62, .blocks = 2}, data).ending(), "GOOD");
  EXPECT_EQ(run_read(Read{.lba = 62, .blocks = 2}, 2 * 4096).data_in, data);
  EXPECT_EQ(run_read(Read{.lba = 63, .blocks = 2}, 2 * 4096).ending(), "05/21/00");
}

}  // namespace
}  // namespace vjbod::scsi::test
