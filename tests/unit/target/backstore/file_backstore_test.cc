// SPDX-License-Identifier: Apache-2.0
// What is special about files: who may use them, what is refused, full disks, and kernels without
// io_uring.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "target/backstore/errc.h"
#include "tests/unit/target/backstore/backstore_world.h"

namespace vjbod::backstore {
namespace {

constexpr uint64_t mebibyte = uint64_t{1} << 20;

BackstoreConfig file_config(const std::string& path) {
  return {.kind = BackstoreKind::file, .path = path};
}

Error refusal(const BackstoreConfig& config) {
  auto opened = open_backstore(config);
  if (!opened) return opened.error();
  ADD_FAILURE() << config.path << " was opened";
  return {};
}

std::shared_ptr<Backstore> open_or_fail(const BackstoreConfig& config) {
  auto opened = open_backstore(config);
  if (opened) return *opened;
  ADD_FAILURE() << opened.error().text;
  return nullptr;
}

TEST(FileBackstore, IsNeverTwoLuns) {
  TemporaryFolder folder;
  std::string path = folder.make_file("lun", mebibyte);
  ASSERT_EQ(::link(path.c_str(), (folder.path() + "/alias").c_str()), 0);
  auto first = open_or_fail(file_config(path));

  for (const std::string& name : {path, folder.path() + "/alias"}) {
    Error error = refusal(file_config(name));
    EXPECT_EQ(error.code, Errc::in_use);
    EXPECT_NE(error.text.find(fmt::format("this daemon (process {})", ::getpid())),
              std::string::npos)
        << error.text;
  }

  first.reset();
  EXPECT_TRUE(open_or_fail(file_config(path)));
}

TEST(FileBackstore, NamesTheProcessThatHasTheFile) {
  TemporaryFolder folder;
  std::string path = folder.make_file("lun", mebibyte);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  pid_t child = ::fork();
  if (child == 0) {
    auto held = open_backstore(file_config(path));
    char byte = held ? 'y' : 'n';
    if (::write(ready[1], &byte, 1) != 1) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');

  Error error = refusal(file_config(path));
  EXPECT_EQ(error.code, Errc::in_use);
  EXPECT_NE(error.text.find(fmt::format("(process {})", child)), std::string::npos) << error.text;

  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(open_or_fail(file_config(path)));
}

TEST(FileBackstore, RefusesWhatIsNoRegularFile) {
  TemporaryFolder folder;
  std::string file = folder.make_file("lun", mebibyte);
  std::string fifo = folder.path() + "/fifo", link = folder.path() + "/link";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ASSERT_EQ(::symlink(file.c_str(), link.c_str()), 0);

  EXPECT_EQ(refusal(file_config(fifo)).code, Errc::wrong_type);
  EXPECT_EQ(refusal(file_config(link)).code, Errc::wrong_type);
  EXPECT_EQ(refusal(file_config(folder.path())).code, Errc::wrong_type);
  EXPECT_EQ(refusal(file_config("/dev/null")).code, Errc::wrong_type);
  EXPECT_EQ(refusal(file_config(folder.path() + "/missing")).code, Errc::not_found);
}

TEST(FileBackstore, RefusesAFileThatIsTooShortOrHasNoWholeBlocks) {
  TemporaryFolder folder;
  BackstoreConfig config = file_config(folder.make_file("short", mebibyte));
  config.size_bytes = 2 * mebibyte;
  EXPECT_EQ(refusal(config).code, Errc::size);
  EXPECT_EQ(refusal(file_config(folder.make_file("ragged", 1000))).code, Errc::size);
  EXPECT_EQ(refusal(file_config(folder.make_file("empty", 0))).code, Errc::size);
}

// A growth that was interrupted before the LUN's new size was recorded.
TEST(FileBackstore, UsesOnlyTheLunsSizeOfALongerFile) {
  TemporaryFolder folder;
  BackstoreConfig config = file_config(folder.make_file("lun", 2 * mebibyte));
  config.size_bytes = mebibyte;
  auto backstore = open_or_fail(config);
  EXPECT_EQ(backstore->geometry().size_bytes, mebibyte);
  EXPECT_TRUE(backstore->resize(2 * mebibyte));
  EXPECT_EQ(backstore->geometry().size_bytes, 2 * mebibyte);
}

TEST(FileBackstore, LeavesNoTraceOfItsProbes) {
  TemporaryFolder folder;
  std::string path = folder.make_file("lun", mebibyte);
  auto backstore = open_or_fail(file_config(path));
  EXPECT_EQ(backstore->allocated_bytes(), 0u);
  EXPECT_EQ(std::filesystem::file_size(path), mebibyte);
}

TEST(FileBackstore, KeepsTheSpaceOfAThickLun) {
  TemporaryFolder folder;
  BackstoreConfig config = file_config(folder.make_file("lun", mebibyte));
  config.thick = true;
  auto backstore = open_or_fail(config);
  EXPECT_FALSE(backstore->capabilities().unmap);
  ASSERT_TRUE(backstore->resize(4 * mebibyte));
  EXPECT_GE(backstore->allocated_bytes(), 3 * mebibyte);
  QueueWorld world(*backstore);
  uint64_t before = backstore->allocated_bytes();
  EXPECT_EQ(world.clear(OpKind::write_zeroes, 2 * mebibyte, mebibyte, true), 0);
  EXPECT_GE(backstore->allocated_bytes(), before);
}

TEST(FileBackstore, TellsThatTheDiskIsFull) {
  SmallFileSystem small("2m");
  if (!small.problem().empty()) GTEST_SKIP() << small.problem();
  std::string path = small.path() + "/lun";
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::ftruncate(fd, 8 * mebibyte), 0);
  ::close(fd);
  auto backstore = open_or_fail(file_config(path));
  QueueWorld world(*backstore);

  EXPECT_EQ(world.write(0, random_content(4 * mebibyte, 1)), ENOSPC);

  // Nothing but that is wrong: after space was given back, all works.
  EXPECT_EQ(world.flush(), 0);
  EXPECT_EQ(world.clear(OpKind::unmap, 0, 8 * mebibyte), 0);
  Content written = random_content(mebibyte, 2);
  EXPECT_EQ(world.write(0, written), 0);
  EXPECT_EQ(world.content(0, mebibyte), written);
}

TEST(FileBackstore, StaysAsItWasWhenThereIsNoSpaceToGrow) {
  SmallFileSystem small("4m");
  if (!small.problem().empty()) GTEST_SKIP() << small.problem();
  std::string path = small.path() + "/lun";
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::ftruncate(fd, mebibyte), 0);
  ::close(fd);
  BackstoreConfig config = file_config(path);
  config.thick = true;
  auto backstore = open_or_fail(config);

  Status grown = backstore->resize(64 * mebibyte);

  ASSERT_FALSE(grown);
  EXPECT_EQ(grown.error().code, Errc::no_space);
  EXPECT_EQ(backstore->geometry().size_bytes, mebibyte);
  EXPECT_EQ(std::filesystem::file_size(path), mebibyte);
}

TEST(FileBackstore, ReportsAFileThatWasCutOffUnderIt) {
  TemporaryFolder folder;
  std::string path = folder.make_file("lun", mebibyte);
  auto backstore = open_or_fail(file_config(path));
  QueueWorld world(*backstore);
  ASSERT_EQ(::truncate(path.c_str(), 65536), 0);
  Content bytes(4096);
  EXPECT_EQ(world.read(512 << 10, bytes), EIO);
}

TEST(FileBackstore, RefusesDirectInputOutputInBlocksTooSmallForTheDisk) {
  TemporaryFolder folder;
  BackstoreConfig config = file_config(folder.make_file("lun", mebibyte));
  config.cache = CacheMode::direct;
  config.block_bytes = 512;
  auto opened = open_backstore(config);
  if (opened) {
    // The disk below has sectors of 512 bytes: then they must work, alone and side by side.
    QueueWorld world(**opened);
    Content first = random_content(512, 1), second = random_content(512, 2);
    EXPECT_EQ(world.write(512, first), 0);
    EXPECT_EQ(world.write(1024, second), 0);
    EXPECT_EQ(world.content(512, 512), first);
    return;
  }
  EXPECT_EQ(opened.error().code, Errc::unsupported);
  EXPECT_NE(opened.error().text.find("page-cache"), std::string::npos) << opened.error().text;
}

// On this thread only, io_uring_setup(2) fails from now on, as under many container run times.
bool forbid_io_uring() {
  sock_filter program[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},  // the system call's number
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_io_uring_setup},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

TEST(FileBackstore, WorksByThreadsAndSaysSoWhereIoUringIsForbidden) {
  TemporaryFolder folder;
  BackstoreConfig config = file_config(folder.make_file("lun", 4 * mebibyte));
  // Threads made by a thread under the filter are under it too.
  std::thread forbidden([&] {
    ASSERT_TRUE(forbid_io_uring());
    auto backstore = open_or_fail(config);
    std::string description = backstore->capabilities().description;
    EXPECT_NE(description.find("4 worker threads (no io_uring: Operation not permitted)"),
              std::string::npos)
        << description;
    QueueWorld world(*backstore);
    Content written = random_content(2 * mebibyte + 512, 1);
    EXPECT_EQ(world.write(512, written, true), 0);
    EXPECT_EQ(world.flush(), 0);
    EXPECT_EQ(world.clear(OpKind::unmap, 0, 65536), 0);
    std::fill_n(written.begin(), 65536 - 512, std::byte{0});
    EXPECT_EQ(world.content(512, written.size()), written);
  });
  forbidden.join();
}

// An acknowledged write is the kernel's: the death of the process cannot lose it.
TEST(FileBackstore, KeepsEveryAcknowledgedWriteOfAKilledProcess) {
  TemporaryFolder folder;
  BackstoreConfig config = file_config(folder.make_file("lun", 8 * mebibyte));
  int acknowledged[2];
  ASSERT_EQ(::pipe(acknowledged), 0);
  pid_t child = ::fork();
  if (child == 0) {
    auto backstore = open_backstore(config);
    if (!backstore) ::_exit(1);
    QueueWorld world(**backstore);
    for (uint64_t i = 0;; ++i) {
      // Both ways in: through the page cache on the shard, and through the kernel's workers.
      size_t length = i % 2 == 0 ? 4096 : 3584;
      if (world.write(i % 1024 * 8192, random_content(length, i)) != 0) ::_exit(2);
      if (::write(acknowledged[1], &i, sizeof i) != sizeof i) ::_exit(3);
    }
  }
  ::close(acknowledged[1]);
  uint64_t last = 0, next = 0;
  while (last < 300 && ::read(acknowledged[0], &next, sizeof next) == sizeof next) last = next;
  ::kill(child, SIGKILL);
  while (::read(acknowledged[0], &next, sizeof next) == sizeof next) last = next;
  ::waitpid(child, nullptr, 0);
  ASSERT_GE(last, 300u);

  auto backstore = open_or_fail(config);
  QueueWorld world(*backstore);
  for (uint64_t i = last < 1000 ? 0 : last - 900; i <= last; ++i) {
    size_t length = i % 2 == 0 ? 4096 : 3584;
    ASSERT_EQ(world.content(i % 1024 * 8192, length), random_content(length, i)) << i;
  }
}

}  // namespace
}  // namespace vjbod::backstore
