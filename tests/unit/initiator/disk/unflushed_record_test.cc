// SPDX-License-Identifier: Apache-2.0
#include "initiator/disk/unflushed_record.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace vjbod::initiator {
namespace {

constexpr const char* boot = "3f2b0c3e-0000-4000-8000-0123456789ab";
constexpr const char* next_boot = "3f2b0c3e-0000-4000-8000-0123456789ac";
constexpr const char* cache = "11111111-1111-4111-8111-111111111111";

class UnflushedRecords : public testing::Test {
 protected:
  UnflushedRecord open(const std::string& boot_id = boot) {
    auto record = UnflushedRecord::open(path, boot_id);
    EXPECT_TRUE(record) << record.error().text;
    return record ? std::move(*record) : UnflushedRecord();
  }
  test::TempDir dir;
  const std::string path = dir / "record";
};

TEST_F(UnflushedRecords, CountsWhatNoFlushCovers) {
  UnflushedRecord record;
  EXPECT_EQ(record.cache_id(), "");
  record.write_completed();
  const uint64_t covered = record.writes_completed();
  record.write_completed();
  record.flushed(covered);
  EXPECT_EQ(record.unflushed(), 1U);
  record.flushed(0);  // of a flush that was issued earlier and took longer
  EXPECT_EQ(record.unflushed(), 1U);
  record.forget_unflushed();
  EXPECT_EQ(record.unflushed(), 0U);
}

TEST_F(UnflushedRecords, IsThereAgainWhateverEndedTheProcess) {
  UnflushedRecord never_closed = open();
  never_closed.set_cache_id(cache);
  never_closed.write_completed();
  never_closed.write_completed();

  const UnflushedRecord found = open();
  EXPECT_EQ(found.cache_id(), cache);
  EXPECT_EQ(found.unflushed(), 2U);
}

TEST_F(UnflushedRecords, MeansNothingAfterARestartOfThisMachine) {
  UnflushedRecord record = open();
  record.set_cache_id(cache);
  record.write_completed();

  const UnflushedRecord found = open(next_boot);
  EXPECT_EQ(found.cache_id(), "");
  EXPECT_EQ(found.unflushed(), 0U);
}

TEST_F(UnflushedRecords, WhatIsNoRecordIsBegunAnew) {
  dir.write("record", std::string(4096, 'x'));
  const UnflushedRecord found = open();
  EXPECT_EQ(found.cache_id(), "");
  EXPECT_EQ(found.unflushed(), 0U);
}

TEST_F(UnflushedRecords, AShorterCacheIdLeavesNothingOfALongerOne) {
  UnflushedRecord record = open();
  record.set_cache_id(cache);
  record.set_cache_id("1");
  EXPECT_EQ(record.cache_id(), "1");
  record.set_cache_id("");
  EXPECT_EQ(record.cache_id(), "");
  record.set_cache_id(std::string(UnflushedRecord::cache_id_bytes_max, 'c'));
  EXPECT_EQ(record.cache_id().size(), UnflushedRecord::cache_id_bytes_max);
}

TEST_F(UnflushedRecords, IsNobodyElsesToRead) {
  open();
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(UnflushedRecords, FollowsNoLinkAndSaysWhatIsWrong) {
  std::filesystem::create_symlink(dir / "elsewhere", path);
  const auto record = UnflushedRecord::open(path, boot);
  ASSERT_FALSE(record);
  EXPECT_NE(record.error().text.find(path), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(dir / "elsewhere"));
}

}  // namespace
}  // namespace vjbod::initiator
