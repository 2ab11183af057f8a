// SPDX-License-Identifier: Apache-2.0
// What the backstore tests run in: a thread with a reactor, a temporary folder, loop devices, and a
// way to submit ops and wait for their ends.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/random.h"
#include "common/runtime/asio_reactor.h"
#include "target/backstore/factory.h"

namespace vjbod::backstore {

using Content = std::vector<std::byte>;

inline Content random_content(size_t length, uint64_t seed) {
  Content content(length);
  Random(seed).fill(content);
  return content;
}

inline std::string run_command(const std::string& command) {
  std::string output;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return "popen failed";
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  int status = ::pclose(pipe);
  while (output.ends_with('\n')) output.pop_back();
  return status == 0 ? output : "failed: " + output;
}

// A folder that goes away with its content. `place` chooses the file system.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& place = ::testing::TempDir()) {
    std::string name = place + "/backstore-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = std::filesystem::canonical(name);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path() const { return path_; }
  std::string make_file(const std::string& name, uint64_t size_bytes) const {
    std::string path = path_ + "/" + name;
    int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(size_bytes)) != 0) std::abort();
    ::close(fd);
    return path;
  }

 private:
  std::string path_;
};

// A file system of `size` (as mount takes it) that can be filled up. Root only.
class SmallFileSystem {
 public:
  explicit SmallFileSystem(const std::string& size) {
    if (::geteuid() != 0) {
      problem_ = "mounting needs root";
      return;
    }
    std::string result = run_command("mount -t tmpfs -o size=" + size + " none " + folder_.path());
    if (!result.empty()) problem_ = result;
  }
  ~SmallFileSystem() {
    if (problem_.empty()) run_command("umount " + folder_.path());
  }

  const std::string& problem() const { return problem_; }
  std::string path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
  std::string problem_;
};

// A block device made of a file. Root only.
class LoopDevice {
 public:
  explicit LoopDevice(const std::string& file) {
    if (::geteuid() != 0) {
      problem_ = "loop devices need root";
      return;
    }
    path_ = run_command("losetup --find --show " + file);
    if (!path_.starts_with("/dev/loop")) problem_ = std::exchange(path_, {});
  }
  ~LoopDevice() {
    if (!path_.empty()) run_command("losetup --detach " + path_);
  }
  LoopDevice(const LoopDevice&) = delete;
  LoopDevice& operator=(const LoopDevice&) = delete;

  const std::string& problem() const { return problem_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string problem_;
};

// A shard: its thread, its reactor, and one queue on a backstore.
class QueueWorld final : private OpOwner {
 public:
  explicit QueueWorld(Backstore& backstore) : thread_([this] { reactor_.run(); }) {
    on_shard([&] {
      auto queue = backstore.open_queue(reactor_);
      if (queue)
        queue_ = std::move(*queue);
      else
        ADD_FAILURE() << queue.error().text;
    });
  }
  ~QueueWorld() {
    on_shard([this] { queue_.reset(); });
    reactor_.stop();
    thread_.join();
  }

  // Runs `work` on the shard and waits for it.
  template <typename Work>
  void on_shard(Work work) {
    std::promise<void> done;
    reactor_.post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  // Submits all and waits for all. The errno of each, in the order given.
  std::vector<int> run(std::vector<Op*> ops) {
    for (Op* op : ops) op->owner = this;
    start(ops);
    return wait();
  }
  void start(std::vector<Op*> ops) {
    on_shard([&] {
      ops_ = ops;
      results_.assign(ops.size(), std::nullopt);
      outstanding_ = ops.size();
      all_done_ = {};
      submitting_ = true;
      for (Op* op : ops) {
        op->owner = this;
        queue_->submit(*op);
      }
      submitting_ = false;
    });
  }
  size_t outstanding() {
    size_t count = 0;
    on_shard([&] { count = outstanding_; });
    return count;
  }
  std::vector<int> wait() {
    all_done_.get_future().wait();
    std::vector<int> errors;
    on_shard([&] {
      for (const auto& result : results_) errors.push_back(result.value_or(-1));
    });
    return errors;
  }

  int run(Op& op) { return run(std::vector<Op*>{&op}).front(); }
  int write(uint64_t offset, ConstBytes data, bool fua = false) {
    Op op;
    op.kind = OpKind::write;
    op.fua = fua;
    // A write only takes from its memory.
    return transfer(op, offset, Bytes(const_cast<std::byte*>(data.data()), data.size()));
  }
  int read(uint64_t offset, Bytes data) {
    Op op;
    return transfer(op, offset, data);
  }
  Content content(uint64_t offset, size_t length) {
    Content bytes(length, std::byte{0xee});
    EXPECT_EQ(read(offset, bytes), 0);
    return bytes;
  }
  int flush() {
    Op op;
    op.kind = OpKind::flush;
    return run(op);
  }
  int clear(OpKind kind, uint64_t offset, uint64_t length, bool may_unmap = false) {
    Op op;
    op.kind = kind;
    op.may_unmap = may_unmap;
    op.offset_bytes = offset;
    op.length_bytes = length;
    return run(op);
  }
  AsioReactor& reactor() { return reactor_; }

 private:
  int transfer(Op& op, uint64_t offset, Bytes data) {
    op.offset_bytes = offset;
    op.length_bytes = data.size();
    op.data = data;
    return run(op);
  }
  void on_op_done(Op& op, std::error_code error) override {
    EXPECT_FALSE(submitting_) << "on_op_done() from inside submit()";
    EXPECT_TRUE(reactor_.on_owner_thread());
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i] != &op) continue;
      EXPECT_FALSE(results_[i].has_value()) << "an op was completed twice";
      results_[i] = error.value();
    }
    if (--outstanding_ == 0) all_done_.set_value();
  }

  AsioReactor reactor_{1};
  std::unique_ptr<BackstoreQueue> queue_;
  std::vector<Op*> ops_;
  std::vector<std::optional<int>> results_;
  size_t outstanding_ = 0;
  bool submitting_ = false;
  std::promise<void> all_done_;
  std::thread thread_;
};

}  // namespace vjbod::backstore
