// SPDX-License-Identifier: Apache-2.0
#include "common/config/state_file.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temp_dir.h"

namespace vjbod::config {
namespace {

TEST(StateFile, ComesBackAsItWasSaved) {
  test::TempDir dir;
  StateFile file(dir.path(), "state.json", 1);
  EXPECT_TRUE(file.load()->empty());

  ASSERT_TRUE(file.save({{"luns", {1, 2}}}));

  EXPECT_EQ((*file.load())["luns"].size(), 2U);
  struct stat found {};
  ASSERT_EQ(stat(file.path().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600U);
}

TEST(StateFile, NewerVersionIsRefusedAndKept) {
  test::TempDir dir;
  ASSERT_TRUE(StateFile(dir.path(), "state.json", 2).save({{"future", true}}));
  std::string before = dir.read("state.json");

  Result<nlohmann::json> state = StateFile(dir.path(), "state.json", 1).load();

  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, StateErrc::newer_version);
  EXPECT_EQ(dir.read("state.json"), before);
}

TEST(StateFile, OlderVersionIsRead) {
  test::TempDir dir;
  ASSERT_TRUE(StateFile(dir.path(), "state.json", 1).save({{"a", 1}}));
  EXPECT_EQ((*StateFile(dir.path(), "state.json", 2).load())["version"], 1);
}

TEST(StateFile, DamageIsRefusedAndKept) {
  test::TempDir dir;
  StateFile file(dir.path(), "state.json", 1);
  for (const char* content :
       {"", "{", "[]", "{}", "{\"version\": \"1\"}", "{\"version\": 0}", "\x00\xff"}) {
    dir.write("state.json", content);
    Result<nlohmann::json> state = file.load();
    ASSERT_FALSE(state) << content;
    EXPECT_EQ(state.error().code, StateErrc::damaged) << content;
    EXPECT_EQ(dir.read("state.json"), content);
  }
}

TEST(StateFile, HugeFileIsRefused) {
  test::TempDir dir;
  dir.write("state.json", "");
  ASSERT_EQ(truncate((dir / "state.json").c_str(), StateFile::bytes_max + 1), 0);
  EXPECT_FALSE(StateFile(dir.path(), "state.json", 1).load());
}

TEST(StateFile, LeftoverOfAnInterruptedSaveDoesNoHarm) {
  test::TempDir dir;
  StateFile file(dir.path(), "state.json", 1);
  ASSERT_TRUE(file.save({{"a", 1}}));
  dir.write("state.json.new", "{\"ver");

  EXPECT_EQ((*file.load())["a"], 1);
  ASSERT_TRUE(file.save({{"a", 2}}));
  EXPECT_EQ((*file.load())["a"], 2);
}

TEST(StateFile, FailedSaveKeepsWhatWasThere) {
  test::TempDir dir;
  StateFile file(dir.path(), "state.json", 1);
  ASSERT_TRUE(file.save({{"a", 1}}));
  ASSERT_EQ(mkdir((dir / "state.json.new").c_str(), 0700), 0);  // no file can be made there

  Status saved = file.save({{"a", 2}});

  ASSERT_FALSE(saved);
  EXPECT_NE(saved.error().text.find(file.path()), std::string::npos);
  EXPECT_EQ((*file.load())["a"], 1);
}

TEST(StateDirectory, BelongsToOneAtATime) {
  test::TempDir dir;
  {
    Result<StateDirectory> first = StateDirectory::open(dir / "state");
    ASSERT_TRUE(first) << first.error().text;
    Result<StateDirectory> second = StateDirectory::open(dir / "state");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, StateErrc::locked);
  }
  EXPECT_TRUE(StateDirectory::open(dir / "state"));
}

TEST(StateDirectory, OneThatCannotBeWrittenIsNamed) {
  // Not even root can make a file there.
  Result<StateDirectory> opened = StateDirectory::open("/proc/self");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, StateErrc::not_usable);
  EXPECT_NE(opened.error().text.find("/proc/self"), std::string::npos);
}

TEST(StateDirectory, IsMadeWithTheFoldersAboveIt) {
  test::TempDir dir;
  ASSERT_TRUE(StateDirectory::open(dir / "var/lib/state"));
  struct stat found {};
  ASSERT_EQ(stat((dir / "var/lib/state").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700U);
}

TEST(StateDirectory, AFileInItsPlaceIsNamed) {
  test::TempDir dir;
  dir.write("state", "");
  Result<StateDirectory> opened = StateDirectory::open(dir / "state");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, StateErrc::not_usable);
}

}  // namespace
}  // namespace vjbod::config
