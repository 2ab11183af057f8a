// SPDX-License-Identifier: Apache-2.0
#include "initiator/frontend/unix_listener.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/nbd_client.h"

namespace vjbod::initiator {
namespace {

namespace fs = std::filesystem;

class UnixListenerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "listenerXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string path() const { return folder / "disk.sock"; }
  static mode_t mode_of(const std::string& file) {
    struct stat status {};
    return lstat(file.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }
  static void leave_stale(const std::string& file) {
    // A listener whose file is moved away does not remove it.
    auto listener = UnixListener::open({file + ".x", 0600, {}, {}});
    ASSERT_TRUE(listener);
    fs::rename(file + ".x", file);
  }

  fs::path folder;
};

TEST_F(UnixListenerTest, FileHasTheModeAskedForAndGoesWithTheListener) {
  {
    const auto listener = UnixListener::open({path(), 0640, {}, {}});
    ASSERT_TRUE(listener);
    EXPECT_EQ(mode_of(path()), 0640u);
    EXPECT_TRUE(test::NbdClient(path()).connected());
  }
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(UnixListenerTest, DefaultModeIsForTheOwnerAlone) {
  const auto listener = UnixListener::open({path()});
  ASSERT_TRUE(listener);
  EXPECT_EQ(mode_of(path()), 0600u);
}

TEST_F(UnixListenerTest, StaleSocketIsReplaced) {
  leave_stale(path());
  ASSERT_TRUE(fs::is_socket(path()));
  const auto listener = UnixListener::open({path()});
  ASSERT_TRUE(listener);
  EXPECT_TRUE(test::NbdClient(path()).connected());
}

TEST_F(UnixListenerTest, SocketThatSomebodyListensOnIsNotTouched) {
  const auto first = UnixListener::open({path()});
  const auto second = UnixListener::open({path()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, system_code(EADDRINUSE));
  EXPECT_NE(second.error().text.find(path()), std::string::npos);
  EXPECT_TRUE(test::NbdClient(path()).connected());
}

TEST_F(UnixListenerTest, FileThatIsNoSocketIsNotTouched) {
  std::ofstream(path()) << "precious";
  const auto listener = UnixListener::open({path()});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, system_code(EEXIST));
  EXPECT_TRUE(fs::is_regular_file(path()));
}

TEST_F(UnixListenerTest, SuccessorsFileIsNotRemoved) {
  auto first = UnixListener::open({path()});
  ASSERT_TRUE(first);
  fs::remove(path());
  const auto second = UnixListener::open({path()});
  { const UnixListener gone = std::move(*first); }
  EXPECT_TRUE(test::NbdClient(path()).connected());
}

TEST_F(UnixListenerTest, LongestPathWorksAndOneMoreIsNamedInTheError) {
  const size_t room = UnixListener::path_bytes_max - (folder.string().size() + 1);
  EXPECT_TRUE(UnixListener::open({folder / std::string(room, 'x')}));
  const auto listener = UnixListener::open({folder / std::string(room + 1, 'x')});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, system_code(ENAMETOOLONG));
  EXPECT_NE(listener.error().text.find("107"), std::string::npos);
}

TEST_F(UnixListenerTest, MissingDirectoryIsNamedInTheError) {
  const auto listener = UnixListener::open({folder / "none" / "disk.sock"});
  ASSERT_FALSE(listener);
  EXPECT_NE(listener.error().text.find("none/disk.sock"), std::string::npos);
}

}  // namespace
}  // namespace vjbod::initiator
