// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/unix_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tests/support/temp_dir.h"
#include "tests/unit/common/rpc/server_fixture.h"

namespace vjbod::rpc {
namespace {

class UnixServerTest : public testing::Test {
 protected:
  Result<std::unique_ptr<UnixServer>> start(const std::string& path) {
    return thread_.run([&] { return UnixServer::start(thread_.reactor(), path, {&service_}); });
  }
  grpc::Status call(const std::string& path, v1::TargetStatus* status) {
    auto stub = v1::TargetAdmin::NewStub(make_local_channel(path));
    grpc::ClientContext context;
    set_deadline(context);
    return stub->GetStatus(&context, {}, status);
  }

  test::TempDir dir_;
  ReactorThread thread_;
  TestService service_{thread_.reactor()};
};

TEST_F(UnixServerTest, AnswersOnASocketThatNobodyElseCanOpen) {
  std::string path = dir_ / "run/target.sock";
  auto server = start(path);
  ASSERT_TRUE(server) << server.error().text;

  struct stat found {};
  ASSERT_EQ(stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600U);
  v1::TargetStatus status;
  grpc::Status result = call(path, &status);
  EXPECT_TRUE(result.ok()) << result.error_message();
  EXPECT_EQ(status.name(), "unix");

  thread_.stop(**server);
  EXPECT_NE(stat(path.c_str(), &found), 0);
}

TEST_F(UnixServerTest, ReplacesASocketThatWasLeftBehind) {
  std::string path = dir_ / "target.sock";
  UniqueFd dead(socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  dead.reset();

  auto server = start(path);

  ASSERT_TRUE(server) << server.error().text;
  thread_.stop(**server);
}

TEST_F(UnixServerTest, RefusesTheSocketOfALivingDaemon) {
  std::string path = dir_ / "target.sock";
  auto first = start(path);
  auto second = start(path);

  ASSERT_FALSE(second);
  EXPECT_EQ(kind_of(second.error().code), Errc::busy);
  v1::TargetStatus status;
  EXPECT_TRUE(call(path, &status).ok());
  thread_.stop(**first);
}

TEST_F(UnixServerTest, NeverRemovesAFileThatIsNoSocket) {
  dir_.write("target.sock", "precious");
  EXPECT_FALSE(start(dir_ / "target.sock"));
  EXPECT_EQ(dir_.read("target.sock"), "precious");
}

TEST_F(UnixServerTest, RefusesAPathThatDoesNotFit) {
  EXPECT_FALSE(start(dir_ / std::string(200, 'x')));
}

TEST(TrustedLocalUser, IsOurselves) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  UniqueFd one(ends[0]), two(ends[1]);
  Result<std::string> user = trusted_local_user(one.get());
  ASSERT_TRUE(user) << user.error().text;
  EXPECT_EQ(*user, std::to_string(geteuid()));
}

TEST(ConnectionTable, HoldsBothLimitsAndForgetsWhatWasClosed) {
  ConnectionTable table(3, 2);
  auto open = [] { return UniqueFd(socket(AF_INET, SOCK_STREAM, 0)); };
  UniqueFd a = open(), b = open(), c = open(), d = open(), e = open();

  EXPECT_TRUE(table.admit(a.get(), "10.0.0.1"));
  EXPECT_TRUE(table.admit(b.get(), "10.0.0.1"));
  EXPECT_FALSE(table.admit(c.get(), "10.0.0.1"));
  EXPECT_TRUE(table.admit(d.get(), "10.0.0.2"));
  EXPECT_FALSE(table.admit(e.get(), "10.0.0.3"));
  a.reset();
  EXPECT_EQ(table.size(), 2U);
  EXPECT_TRUE(table.admit(c.get(), "10.0.0.1"));
}

TEST(ConnectionTable, ADescriptorUsedForSomethingElseDoesNotCount) {
  ConnectionTable table(1, 1);
  UniqueFd first(socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_TRUE(table.admit(first.get(), "10.0.0.1"));
  UniqueFd other(socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_EQ(dup2(other.get(), first.get()), first.get());
  EXPECT_EQ(table.size(), 0U);
}

}  // namespace
}  // namespace vjbod::rpc
