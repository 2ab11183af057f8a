// SPDX-License-Identifier: Apache-2.0
// What every kind of backstore promises, alone and inside the filters.
#include "target/backstore/errc.h"
#include "tests/unit/target/backstore/backstore_world.h"

namespace vjbod::backstore {
namespace {

constexpr uint64_t size_bytes = uint64_t{16} << 20;

// One row of the table of kinds: fills in the configuration, or says why it cannot be had here.
struct Kind {
  const char* name;
  BackstoreKind kind;
  const char* place = "";  // folder of the file; empty: the usual temporary folder
  CacheMode cache = CacheMode::page_cache;
  bool use_io_uring = true;
  bool filters = false;
  uint32_t block_bytes = 512;
};

constexpr Kind kinds[] = {
    {"memory", BackstoreKind::memory},
    {"memory_in_filters", BackstoreKind::memory, "", CacheMode::page_cache, true, true},
    {"file", BackstoreKind::file},
    {"file_4096", BackstoreKind::file, "", CacheMode::page_cache, true, false, 4096},
    {"file_on_tmpfs", BackstoreKind::file, "/dev/shm"},
    {"file_direct", BackstoreKind::file, "", CacheMode::direct, true, false, 4096},
    {"file_by_threads", BackstoreKind::file, "", CacheMode::page_cache, false},
    {"file_direct_by_threads", BackstoreKind::file, "", CacheMode::direct, false, false, 4096},
    {"file_in_filters", BackstoreKind::file, "", CacheMode::page_cache, true, true},
    {"block", BackstoreKind::block},
    {"block_direct", BackstoreKind::block, "", CacheMode::direct, true, false, 4096},
};

class BackstoreContract : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    const Kind& kind = GetParam();
    folder_.emplace(*kind.place != '\0' ? kind.place : ::testing::TempDir());
    config_.kind = kind.kind;
    config_.cache = kind.cache;
    config_.use_io_uring = kind.use_io_uring;
    config_.block_bytes = kind.block_bytes;
    if (kind.kind == BackstoreKind::memory) config_.size_bytes = size_bytes;
    if (kind.kind != BackstoreKind::memory) config_.path = folder_->make_file("lun", size_bytes);
    if (kind.kind == BackstoreKind::block) {
      device_.emplace(config_.path);
      if (!device_->problem().empty()) GTEST_SKIP() << device_->problem();
      config_.path = device_->path();
    }
    if (kind.filters)
      for (FilterKind filter : {FilterKind::trace, FilterKind::error, FilterKind::delay})
        config_.filters.push_back({.kind = filter});
    auto opened = open_backstore(config_);
    if (!opened && opened.error().code == Errc::unsupported) GTEST_SKIP() << opened.error().text;
    ASSERT_TRUE(opened) << opened.error().text;
    backstore_ = std::move(*opened);
    world_.emplace(*backstore_);
  }
  void TearDown() override {
    world_.reset();
    backstore_.reset();
  }
  uint64_t block() const { return config_.block_bytes; }

  std::optional<TemporaryFolder> folder_;
  std::optional<LoopDevice> device_;
  BackstoreConfig config_;
  std::shared_ptr<Backstore> backstore_;
  std::optional<QueueWorld> world_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, BackstoreContract, ::testing::ValuesIn(kinds),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_P(BackstoreContract, TellsItsSizeAndBlock) {
  EXPECT_EQ(backstore_->geometry().size_bytes, size_bytes);
  EXPECT_EQ(backstore_->geometry().block_bytes, block());
  EXPECT_FALSE(backstore_->capabilities().read_only);
  EXPECT_FALSE(backstore_->capabilities().description.empty());
}

TEST_P(BackstoreContract, IsZerosWhenNew) {
  EXPECT_EQ(world_->content(size_bytes - 65536, 65536), Content(65536));
}

TEST_P(BackstoreContract, ReadsWhatWasWritten) {
  for (uint64_t length : {block(), 8 * block(), uint64_t{1} << 20, uint64_t{3} << 20}) {
    Content written = random_content(length, length);
    uint64_t offset = 3 * block();
    ASSERT_EQ(world_->write(offset, written), 0);
    EXPECT_EQ(world_->content(offset, length), written) << length;
  }
}

TEST_P(BackstoreContract, ChangesNothingBesideAWrite) {
  Content around = random_content(4 * block(), 1);
  ASSERT_EQ(world_->write(0, around), 0);
  Content written = random_content(block(), 2);
  ASSERT_EQ(world_->write(block(), written), 0);
  std::copy(written.begin(), written.end(), around.begin() + static_cast<ptrdiff_t>(block()));
  EXPECT_EQ(world_->content(0, around.size()), around);
}

TEST_P(BackstoreContract, TakesBuffersAtAnyAddress) {
  Content storage = random_content(65536 + 64, 3);
  Bytes odd = Bytes(storage).subspan(7, 65536);
  Content wanted(odd.begin(), odd.end());
  ASSERT_EQ(world_->write(8192, odd), 0);
  std::fill(odd.begin(), odd.end(), std::byte{0});
  ASSERT_EQ(world_->read(8192, odd), 0);
  EXPECT_EQ(Content(odd.begin(), odd.end()), wanted);
}

TEST_P(BackstoreContract, ServesTheLastBlock) {
  Content written = random_content(block(), 4);
  ASSERT_EQ(world_->write(size_bytes - block(), written), 0);
  EXPECT_EQ(world_->content(size_bytes - block(), block()), written);
}

TEST_P(BackstoreContract, FinishesAnOpOfNoLength) {
  EXPECT_EQ(world_->write(size_bytes, Bytes()), 0);
  EXPECT_EQ(world_->clear(OpKind::write_zeroes, 0, 0), 0);
}

TEST_P(BackstoreContract, FlushesAndForcesUnitAccess) {
  Content written = random_content(8 * block(), 5);
  ASSERT_EQ(world_->write(0, written), 0);
  EXPECT_EQ(world_->flush(), 0);
  if (backstore_->capabilities().native_fua) {
    EXPECT_EQ(world_->write(0, written, true), 0);
  }
  EXPECT_EQ(world_->content(0, written.size()), written);
}

// More than the ring of an io_uring holds, so that ops have to wait for room.
TEST_P(BackstoreContract, FinishesEachOfVeryManyOpsOnce) {
  constexpr size_t count = 2500;
  constexpr uint64_t length = 4096;
  Content data = random_content(count * length, 6);
  std::vector<Op> ops(count);
  std::vector<Op*> pointers;
  for (size_t i = 0; i < count; ++i) {
    ops[i].kind = OpKind::write;
    ops[i].fua = i % 500 == 0 && backstore_->capabilities().native_fua;
    ops[i].offset_bytes = i * length;
    ops[i].length_bytes = length;
    ops[i].data = Bytes(data).subspan(i * length, length);
    pointers.push_back(&ops[i]);
  }
  EXPECT_EQ(world_->run(pointers), std::vector<int>(count, 0));
  Content wanted = data;
  std::fill(data.begin(), data.end(), std::byte{0});
  for (Op& op : ops) {
    op.kind = OpKind::read;
    op.fua = false;
  }
  EXPECT_EQ(world_->run(pointers), std::vector<int>(count, 0));
  EXPECT_EQ(data, wanted);
}

TEST_P(BackstoreContract, ReadsZerosAfterUnmapButNotBesideIt) {
  if (!backstore_->capabilities().unmap) GTEST_SKIP() << "this backstore does not unmap";
  Content written = random_content(1 << 20, 7);
  ASSERT_EQ(world_->write(0, written), 0);
  uint64_t first = block(), length = (512 << 10) + block();
  ASSERT_EQ(world_->clear(OpKind::unmap, first, length), 0);
  std::fill_n(written.begin() + static_cast<ptrdiff_t>(first), length, std::byte{0});
  EXPECT_EQ(world_->content(0, written.size()), written);
}

TEST_P(BackstoreContract, GivesUnmappedSpaceBack) {
  if (!backstore_->capabilities().unmap || config_.kind == BackstoreKind::block)
    GTEST_SKIP() << "this backstore does not tell";
  ASSERT_EQ(world_->write(0, random_content(8 << 20, 8)), 0);
  ASSERT_EQ(world_->flush(), 0);
  uint64_t before = backstore_->allocated_bytes();
  EXPECT_GE(before, uint64_t{8} << 20);
  ASSERT_EQ(world_->clear(OpKind::unmap, 0, 4 << 20), 0);
  EXPECT_LE(backstore_->allocated_bytes(), before - (uint64_t{4} << 20) + 65536);
}

TEST_P(BackstoreContract, WritesZeroesBothWays) {
  for (bool may_unmap : {false, true}) {
    Content written = random_content(3 << 20, 9);
    ASSERT_EQ(world_->write(0, written), 0);
    uint64_t first = block(), length = (2 << 20) + block();
    ASSERT_EQ(world_->clear(OpKind::write_zeroes, first, length, may_unmap), 0);
    std::fill_n(written.begin() + static_cast<ptrdiff_t>(first), length, std::byte{0});
    EXPECT_EQ(world_->content(0, written.size()), written) << may_unmap;
  }
}

TEST_P(BackstoreContract, KeepsTheSpaceOfZeroesThatMustNotUnmap) {
  if (config_.kind == BackstoreKind::block) GTEST_SKIP() << "a device does not tell";
  ASSERT_EQ(world_->write(0, random_content(4 << 20, 10)), 0);
  ASSERT_EQ(world_->flush(), 0);
  ASSERT_EQ(world_->clear(OpKind::write_zeroes, 0, 4 << 20), 0);
  EXPECT_GE(backstore_->allocated_bytes(), uint64_t{4} << 20);
}

TEST_P(BackstoreContract, ShowsAFinishedWriteToOtherShards) {
  QueueWorld other(*backstore_);
  for (uint64_t i = 0; i < 20; ++i) {
    Content written = random_content(4096, 100 + i);
    ASSERT_EQ(world_->write(i * 8192, written), 0);
    EXPECT_EQ(other.content(i * 8192, 4096), written);
  }
  EXPECT_EQ(other.flush(), 0);
}

TEST_P(BackstoreContract, GrowsUnderOpenQueues) {
  if (config_.kind == BackstoreKind::block) GTEST_SKIP() << "a device is grown by other means";
  Content written = random_content(4096, 11);
  ASSERT_EQ(world_->write(0, written), 0);
  auto grown = backstore_->resize(2 * size_bytes);
  ASSERT_TRUE(grown) << grown.error().text;
  EXPECT_EQ(backstore_->geometry().size_bytes, 2 * size_bytes);
  EXPECT_EQ(world_->content(0, 4096), written);
  EXPECT_EQ(world_->content(2 * size_bytes - 4096, 4096), Content(4096));
  EXPECT_EQ(world_->write(2 * size_bytes - 4096, written), 0);
  EXPECT_EQ(world_->content(2 * size_bytes - 4096, 4096), written);
}

TEST_P(BackstoreContract, RefusesToShrink) {
  EXPECT_FALSE(backstore_->resize(size_bytes - block()));
  EXPECT_FALSE(backstore_->resize(size_bytes + 1));
  EXPECT_EQ(backstore_->geometry().size_bytes, size_bytes);
}

TEST_P(BackstoreContract, KeepsItsContentWhenOpenedAgain) {
  if (config_.kind == BackstoreKind::memory) GTEST_SKIP() << "memory forgets";
  Content written = random_content(256 << 10, 12);
  ASSERT_EQ(world_->write(block(), written), 0);
  TearDown();
  auto opened = open_backstore(config_);
  ASSERT_TRUE(opened) << opened.error().text;
  backstore_ = std::move(*opened);
  world_.emplace(*backstore_);
  EXPECT_EQ(world_->content(block(), written.size()), written);
}

TEST_P(BackstoreContract, OpensReadOnly) {
  TearDown();
  config_.read_only = true;
  auto opened = open_backstore(config_);
  ASSERT_TRUE(opened) << opened.error().text;
  backstore_ = std::move(*opened);
  world_.emplace(*backstore_);
  EXPECT_TRUE(backstore_->capabilities().read_only);
  EXPECT_FALSE(backstore_->capabilities().unmap);
  EXPECT_EQ(world_->content(0, 65536), Content(65536));
  EXPECT_EQ(world_->flush(), 0);
}

}  // namespace
}  // namespace vjbod::backstore
