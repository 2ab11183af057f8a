// SPDX-License-Identifier: Apache-2.0
// How many 4 KiB operations one shard gets through one backstore queue, without a network: random,
// at a few queue depths. Prints a table. Usage: backstore_benchmark [FOLDER...]; each folder gets a
// file of 256 MiB for as long as it takes.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/runtime/asio_reactor.h"
#include "target/backstore/factory.h"

namespace vjbod::backstore {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t size_bytes = uint64_t{256} << 20;
constexpr uint64_t operation_bytes = 4096;
constexpr Duration run_time = 1s;

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Keeps `depth` operations outstanding for the run time.
class Load final : private OpOwner {
 public:
  Load(Backstore& backstore, OpKind kind, bool fua, size_t depth)
      : kind_(kind), fua_(fua), ops_(depth), memory_(depth * operation_bytes + 4096) {
    auto queue = backstore.open_queue(reactor_);
    if (!queue) {
      std::fprintf(stderr, "%s\n", queue.error().text.c_str());
      std::exit(1);
    }
    queue_ = std::move(*queue);
  }

  void run(const char* name) {
    size_t misaligned = reinterpret_cast<uintptr_t>(memory_.data()) % 4096;
    std::byte* memory = memory_.data() + (4096 - misaligned) % 4096;
    for (size_t i = 0; i < ops_.size(); ++i) {
      ops_[i].kind = kind_;
      ops_[i].fua = fua_;
      ops_[i].owner = this;
      ops_[i].length_bytes = operation_bytes;
      ops_[i].data = Bytes(memory + i * operation_bytes, operation_bytes);
    }
    Timer end(reactor_, [this] { over_ = true; });
    reactor_.post([&] {
      start_ = reactor_.now();
      end.arm_after(run_time);
      for (Op& op : ops_) submit(op);
    });
    double cpu_before = cpu_seconds();
    reactor_.run();
    double cpu = cpu_seconds() - cpu_before;
    double elapsed = std::chrono::duration<double>(reactor_.now() - start_).count();
    auto count = static_cast<double>(done_);
    std::printf("%-34s %-9s %5zu %10.0f/s %8.2f us CPU each, %3.0f%% of a core\n", name,
                fua_ ? "write fua" : name_of(kind_), ops_.size(), count / elapsed,
                cpu * 1e6 / count, 100 * cpu / elapsed);
    std::fflush(stdout);
  }

 private:
  void submit(Op& op) {
    op.offset_bytes = reactor_.random().below(size_bytes / operation_bytes) * operation_bytes;
    ++outstanding_;
    queue_->submit(op);
  }
  void on_op_done(Op& op, std::error_code error) override {
    if (error) {
      std::fprintf(stderr, "%s: %s\n", name_of(op.kind), error.message().c_str());
      std::exit(1);
    }
    ++done_;
    --outstanding_;
    if (!over_) return submit(op);
    if (outstanding_ == 0) reactor_.stop();
  }

  AsioReactor reactor_{1};
  const OpKind kind_;
  const bool fua_;
  std::vector<Op> ops_;
  std::vector<std::byte> memory_;
  std::unique_ptr<BackstoreQueue> queue_;
  TimePoint start_{};
  uint64_t done_ = 0;
  size_t outstanding_ = 0;
  bool over_ = false;
};

void measure(const std::string& name, const BackstoreConfig& config) {
  auto backstore = open_backstore(config);
  if (!backstore) {
    std::printf("%-34s %s\n", name.c_str(), backstore.error().text.c_str());
    return;
  }
  for (OpKind kind : {OpKind::read, OpKind::write})
    for (size_t depth : {1U, 32U}) Load(**backstore, kind, false, depth).run(name.c_str());
  if (config.kind == BackstoreKind::file)
    Load(**backstore, OpKind::write, true, 32).run(name.c_str());
}

bool make_file(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  // Written in blocks, so that the page cache holds it in small pages, as after random writes.
  std::vector<std::byte> block(operation_bytes, std::byte{1});
  bool good = ::ftruncate(fd, static_cast<off_t>(size_bytes)) == 0;
  for (uint64_t first : {operation_bytes, uint64_t{0}})
    for (uint64_t at = first; good && at < size_bytes; at += 2 * operation_bytes)
      good = ::pwrite(fd, block.data(), block.size(), static_cast<off_t>(at)) ==
             static_cast<ssize_t>(block.size());
  good = good && ::fdatasync(fd) == 0;
  ::close(fd);
  return good;
}

void measure_folder(const std::string& folder) {
  std::string path = folder + "/backstore-benchmark.lun";
  if (make_file(path)) {
    BackstoreConfig config{.kind = BackstoreKind::file, .path = path, .block_bytes = 4096};
    measure(folder + " page cache", config);
    config.use_io_uring = false;
    measure(folder + " page cache, threads", config);
    config.use_io_uring = true;
    config.cache = CacheMode::direct;
    measure(folder + " direct", config);
  } else {
    std::perror(path.c_str());
  }
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace vjbod::backstore

int main(int argc, char** argv) {
  using namespace vjbod::backstore;
  measure("memory", {.kind = BackstoreKind::memory, .size_bytes = size_bytes});
  for (int i = 1; i < argc; ++i) measure_folder(argv[i]);
}
