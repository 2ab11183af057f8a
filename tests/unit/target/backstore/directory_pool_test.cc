// SPDX-License-Identifier: Apache-2.0
#include "target/backstore/directory_pool.h"

#include <sys/stat.h>

#include "target/backstore/errc.h"
#include "tests/unit/target/backstore/backstore_world.h"

namespace vjbod::backstore {
namespace {

constexpr uint64_t mebibyte = uint64_t{1} << 20;
constexpr const char* name = "0b9b8f6e-3f0a-4a58-9d1c-3d3f5b1f4e21";

class DirectoryPoolTest : public ::testing::Test {
 protected:
  DirectoryPool open() {
    auto pool = DirectoryPool::open(folder_.path());
    EXPECT_TRUE(pool) << pool.error().text;
    return std::move(*pool);
  }
  size_t file_count() {
    auto files = std::filesystem::directory_iterator(folder_.path());
    return static_cast<size_t>(std::distance(begin(files), end(files)));
  }
  TemporaryFolder folder_;
};

TEST_F(DirectoryPoolTest, MakesASparseFileThatOpensAsALun) {
  DirectoryPool pool = open();
  auto path = pool.create(name, 64 * mebibyte, false);
  ASSERT_TRUE(path) << path.error().text;
  EXPECT_EQ(*path, pool.path_of(name));
  struct stat status {};
  ASSERT_EQ(::stat(path->c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_LT(status.st_blocks * 512, 65536);
  auto backstore = open_backstore({.path = *path, .size_bytes = 64 * mebibyte});
  EXPECT_TRUE(backstore) << backstore.error().text;
  EXPECT_EQ(*pool.names(), std::vector<std::string>{name});
}

TEST_F(DirectoryPoolTest, AllocatesAThickFileAtOnce) {
  DirectoryPool pool = open();
  ASSERT_TRUE(pool.create(name, 4 * mebibyte, true));
  auto space = pool.space();
  ASSERT_TRUE(space);
  EXPECT_GE(space->allocated_bytes, 4 * mebibyte);
  EXPECT_EQ(space->lun_count, 1u);
  EXPECT_LE(space->free_bytes, space->total_bytes);
}

TEST_F(DirectoryPoolTest, LeavesAnExistingLunAlone) {
  DirectoryPool pool = open();
  ASSERT_TRUE(pool.create(name, mebibyte, false));
  auto again = pool.create(name, 2 * mebibyte, false);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::already_exists);
  EXPECT_EQ(std::filesystem::file_size(pool.path_of(name)), mebibyte);
}

TEST_F(DirectoryPoolTest, LeavesNothingBehindOnAFullDisk) {
  SmallFileSystem small("1m");
  if (!small.problem().empty()) GTEST_SKIP() << small.problem();
  auto pool = DirectoryPool::open(small.path());
  ASSERT_TRUE(pool);
  uint64_t free_bytes = pool->space()->free_bytes;

  auto created = pool->create(name, 16 * mebibyte, true);

  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, Errc::no_space);
  EXPECT_TRUE(std::filesystem::is_empty(small.path()));
  EXPECT_EQ(pool->space()->free_bytes, free_bytes);
}

TEST_F(DirectoryPoolTest, DeletesALunUnlessItIsServed) {
  DirectoryPool pool = open();
  std::string path = *pool.create(name, mebibyte, false);
  auto backstore = open_backstore({.path = path});
  ASSERT_TRUE(backstore);

  Status removed = pool.remove(name);
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, Errc::in_use);

  backstore->reset();
  EXPECT_TRUE(pool.remove(name));
  EXPECT_EQ(file_count(), 0u);
  removed = pool.remove(name);
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, Errc::not_found);
}

TEST_F(DirectoryPoolTest, RefusesNamesThatCouldLeaveTheDirectory) {
  DirectoryPool pool = open();
  for (const std::string& bad : {std::string(), std::string("../x"), std::string("a/b"),
                                 std::string("A"), std::string("."), std::string(65, 'a')}) {
    auto created = pool.create(bad, mebibyte, false);
    ASSERT_FALSE(created) << bad;
    EXPECT_EQ(created.error().code, Errc::bad_config);
    EXPECT_FALSE(pool.remove(bad));
  }
  EXPECT_EQ(file_count(), 0u);
  EXPECT_TRUE(pool.create(std::string(64, 'a'), mebibyte, false));
}

TEST_F(DirectoryPoolTest, ClearsAwayWhatACrashLeftUnfinished) {
  folder_.make_file("x.lun.new", mebibyte);
  folder_.make_file("y.lun", mebibyte);
  folder_.make_file("unrelated", mebibyte);
  DirectoryPool pool = open();
  EXPECT_EQ(file_count(), 2u);
  EXPECT_EQ(*pool.names(), std::vector<std::string>{"y"});
}

TEST_F(DirectoryPoolTest, SaysThatItsDirectoryIsMissing) {
  auto pool = DirectoryPool::open(folder_.path() + "/missing");
  ASSERT_FALSE(pool);
  EXPECT_EQ(pool.error().code, Errc::not_found);
  EXPECT_FALSE(DirectoryPool::open(folder_.make_file("file", 0)));
}

}  // namespace
}  // namespace vjbod::backstore
