// SPDX-License-Identifier: Apache-2.0
// Serves a disk in RAM through the real NBD server, for tests with real clients and for measuring
// the server alone. Ends on SIGTERM or SIGINT.
// nbd_memory_server SOCKET SIZE_MIB [BLOCK_BYTES [SHARDS]]
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <future>

#include "common/base/log.h"
#include "initiator/frontend/nbd_server.h"
#include "tests/support/memory_block_device.h"
#include "tests/support/run_on.h"

namespace {

using namespace vjbod;

class Closed final : public initiator::FrontendOwner {
 public:
  void on_frontend_closed() override { promise_.set_value(); }
  void wait() { promise_.get_future().wait(); }

 private:
  std::promise<void> promise_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s SOCKET SIZE_MIB [BLOCK_BYTES [SHARDS]]\n", argv[0]);
    return 2;
  }
  if (!start_logging("info")) return 1;
  const uint64_t size_bytes = std::strtoull(argv[2], nullptr, 10) << 20;
  const auto block_bytes = static_cast<uint32_t>(argc > 3 ? std::atoi(argv[3]) : 512);
  const int shard_count = argc > 4 ? std::atoi(argv[4]) : 2;
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  sigaddset(&stop_signals, SIGTERM);
  sigaddset(&stop_signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);

  constexpr size_t shard_memory_bytes = size_t{64} << 20;
  Shard home("disk", -1, 1, shard_memory_bytes);
  std::vector<std::unique_ptr<Shard>> more;
  std::vector<Shard*> others;
  for (int i = 1; i < shard_count; ++i) {
    more.push_back(std::make_unique<Shard>(fmt::format("shard{}", i), -1,
                                           static_cast<uint64_t>(i + 1), shard_memory_bytes));
    others.push_back(more.back().get());
  }
  test::MemoryBlockDevice device(home.reactor(), test::full_geometry(size_bytes, block_bytes));
  initiator::NbdServerOptions options;
  options.socket.path = argv[1];
  options.connection.exported = {"memory", "a disk in RAM"};
  Closed closed;
  initiator::NbdServer server(device, home, others, options);
  const Status started = test::run_on(home, [&] { return server.start(closed); });
  if (!started) {
    std::fprintf(stderr, "%s\n", started.error().text.c_str());
    return 1;
  }
  std::printf("%s\n", server.uri().c_str());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&stop_signals, &signal);
  test::run_on(home, [&] { server.stop(); });
  closed.wait();
  test::run_on(home, [] {});  // the upcall has returned
  return 0;
}
