// SPDX-License-Identifier: Apache-2.0
// What is special about block devices: exclusive use, and a device that loses writes. On loop
// devices, as root.
#include "target/backstore/errc.h"
#include "tests/unit/target/backstore/backstore_world.h"

namespace vjbod::backstore {
namespace {

constexpr uint64_t mebibyte = uint64_t{1} << 20;

class BlockBackstoreTest : public ::testing::Test {
 protected:
  void make_device(uint64_t size_bytes) {
    file_ = folder_.make_file("disk", size_bytes);
    device_.emplace(file_);
    config_.kind = BackstoreKind::block;
    config_.path = device_->path();
  }

  TemporaryFolder folder_;
  std::string file_;
  std::optional<LoopDevice> device_;
  BackstoreConfig config_;
};

TEST_F(BlockBackstoreTest, IsNeverTwoLuns) {
  make_device(16 * mebibyte);
  if (!device_->problem().empty()) GTEST_SKIP() << device_->problem();
  auto first = open_backstore(config_);
  ASSERT_TRUE(first) << first.error().text;

  auto second = open_backstore(config_);

  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::in_use);
  EXPECT_NE(second.error().text.find(config_.path), std::string::npos);
}

TEST_F(BlockBackstoreTest, SaysWhereAMountedDeviceIsMounted) {
  make_device(16 * mebibyte);
  if (!device_->problem().empty()) GTEST_SKIP() << device_->problem();
  std::string place = folder_.path() + "/mounted";
  std::filesystem::create_directory(place);
  ASSERT_EQ(run_command("mkfs.ext4 -q " + config_.path + " && mount " + config_.path + " " + place),
            "");

  auto opened = open_backstore(config_);

  EXPECT_EQ(run_command("umount " + place), "");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::in_use);
  EXPECT_NE(opened.error().text.find("mounted on " + place), std::string::npos)
      << opened.error().text;
}

TEST_F(BlockBackstoreTest, RefusesAFileAndADeviceTooSmall) {
  make_device(mebibyte);
  config_.path = file_;
  auto opened = open_backstore(config_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::wrong_type);

  if (!device_->problem().empty()) GTEST_SKIP() << device_->problem();
  config_.path = device_->path();
  config_.size_bytes = 2 * mebibyte;
  opened = open_backstore(config_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::size);
}

TEST_F(BlockBackstoreTest, FollowsADeviceThatGrew) {
  make_device(4 * mebibyte);
  if (!device_->problem().empty()) GTEST_SKIP() << device_->problem();
  auto opened = open_backstore(config_);
  ASSERT_TRUE(opened) << opened.error().text;
  Backstore& backstore = **opened;
  EXPECT_FALSE(backstore.resize(8 * mebibyte));

  ASSERT_EQ(::truncate(file_.c_str(), 8 * mebibyte), 0);
  ASSERT_EQ(run_command("losetup --set-capacity " + config_.path), "");

  Status grown = backstore.resize(8 * mebibyte);
  ASSERT_TRUE(grown) << grown.error().text;
  QueueWorld world(backstore);
  Content written = random_content(4096, 1);
  EXPECT_EQ(world.write(8 * mebibyte - 4096, written), 0);
  EXPECT_EQ(world.content(8 * mebibyte - 4096, 4096), written);
}

// The device's own file lies on a full file system: writes are taken into the page cache, and are
// lost when it is written out. The kernel tells one flush only; we must tell all.
TEST_F(BlockBackstoreTest, FailsEveryFlushAfterWritesWereLost) {
  SmallFileSystem small("2m");
  if (!small.problem().empty()) GTEST_SKIP() << small.problem();
  std::string file = small.path() + "/disk";
  int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::ftruncate(fd, 16 * mebibyte), 0);
  ::close(fd);
  LoopDevice device(file);
  ASSERT_EQ(device.problem(), "");
  config_.kind = BackstoreKind::block;
  config_.path = device.path();
  {
    auto opened = open_backstore(config_);
    ASSERT_TRUE(opened) << opened.error().text;
    QueueWorld world(**opened);
    QueueWorld other(**opened);
    ASSERT_EQ(world.write(0, random_content(8 * mebibyte, 1)), 0);

    EXPECT_NE(world.flush(), 0);

    EXPECT_NE(world.flush(), 0);
    EXPECT_NE(other.flush(), 0);
    EXPECT_NE(world.write(0, random_content(4096, 2), true), 0);
    EXPECT_EQ(world.content(0, 4096).size(), 4096u);
  }
}

}  // namespace
}  // namespace vjbod::backstore
