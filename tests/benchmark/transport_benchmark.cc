// SPDX-License-Identifier: Apache-2.0
// How fast a pair of TCP movers is, over loopback, with nothing above them: an initiator that keeps
// `depth` reads or writes of `bytes` under way, and a target that answers each at once from memory.
// Each end has a thread of its own.
//   transport_benchmark [depth=32] [bytes=4096] [seconds=2] [read|write] [digests]
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <future>
#include <thread>
#include <vector>

#include "common/base/check.h"
#include "common/iscsi/errc.h"
#include "common/runtime/shard.h"
#include "common/transport/tcp/tcp_connector.h"
#include "common/transport/tcp/tcp_listener.h"

namespace vjbod::transport {
namespace {

iscsi::NegotiatedParameters parameters(bool digests) {
  iscsi::NegotiatedParameters result;
  result.header_digest = result.data_digest = digests;
  result.our_max_recv_data_segment_length = result.peer_max_recv_data_segment_length = 256 * 1024;
  result.max_burst_length = 1024 * 1024;
  return result;
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

class Target final : public DataMoverEvents {
 public:
  Target(AsioReactor& reactor, Socket socket, size_t bytes, bool digests)
      : mover_(make_tcp_mover(reactor, std::move(socket))), memory_(bytes) {
    mover_->start(*this);
    mover_->enable_full_feature(parameters(digests), numbers_);
    start_cpu_ = cpu_seconds();
  }
  bool closed() const { return closed_; }

  void on_control(const ReceivedControl& received) override {
    const auto& command = std::get<iscsi::ScsiCommand>(received.pdu);
    if (itts_.size() <= SlotOf(received.task)) itts_.resize(SlotOf(received.task) + 1);
    itts_[SlotOf(received.task)] = command.itt;
    if (command.read) {
      mover_->put_data(received.task, 0, memory_);
    } else if (received.data.size() == memory_.size()) {
      std::memcpy(memory_.data(), received.data.data(), received.data.size());
      answer(received.task);
    } else {
      mover_->get_data(received.task, received.data.size(),
                       Bytes(memory_).subspan(received.data.size()));
    }
  }
  void on_transfer_done(TaskHandle task) override { answer(task); }
  void on_peer_alive() override {}
  void on_closed(const Error&) override {
    const double cpu = cpu_seconds() - start_cpu_;
    std::printf("target thread: %.2f s of CPU, %.2f us for each\n", cpu,
                1e6 * cpu / static_cast<double>(numbers_.stat_sn.value));
    closed_ = true;
  }

 private:
  static size_t SlotOf(TaskHandle task) { return task & 0xfff; }
  void answer(TaskHandle task) {
    iscsi::ScsiResponse response;
    response.itt = itts_[SlotOf(task)];
    response.stat_sn = numbers_.stat_sn;
    ++numbers_.stat_sn;
    mover_->send_control(response, {});
    mover_->end_task(task);
  }

  std::unique_ptr<DataMover> mover_;
  SequenceNumbers numbers_;
  std::vector<std::byte> memory_;
  std::vector<uint32_t> itts_;
  double start_cpu_ = 0;
  std::atomic<bool> closed_ = false;
};

class Initiator final : public DataMoverEvents {
 public:
  Initiator(std::unique_ptr<DataMover> mover, size_t depth, size_t bytes, bool write, bool digests)
      : mover_(std::move(mover)), write_(write), memory_(depth, std::vector<std::byte>(bytes)) {
    mover_->start(*this);
    mover_->enable_full_feature(parameters(digests), numbers_);
    for (uint32_t i = 0; i < depth; ++i) issue(i);
  }
  void stop() { mover_->terminate({iscsi::Errc::closed_locally, "The benchmark is over."}); }
  bool closed() const { return closed_; }
  uint64_t done() const { return done_; }

  void on_control(const ReceivedControl& received) override {
    ++done_;
    issue(std::get<iscsi::ScsiResponse>(received.pdu).itt);
  }
  void on_transfer_done(TaskHandle) override {}
  void on_peer_alive() override {}
  void on_closed(const Error& reason) override {
    std::printf("initiator: %s\n", reason.text.c_str());
    closed_ = true;
  }

 private:
  void issue(uint32_t itt) {
    iscsi::ScsiCommand command;
    command.itt = itt;
    command.read = !write_;
    command.write = write_;
    auto& memory = memory_[itt];
    if (write_)
      mover_->begin_task(command, memory, {});
    else
      mover_->begin_task(command, {}, memory);
  }

  std::unique_ptr<DataMover> mover_;
  const bool write_;
  SequenceNumbers numbers_;
  std::vector<std::vector<std::byte>> memory_;
  uint64_t done_ = 0;
  bool closed_ = false;
};

struct Acceptor final : TcpListenerEvents {
  void on_accepted(AcceptedSocket accepted) override { socket = std::move(accepted.socket); }
  void on_accept_trouble(const Error&) override {}
  Socket socket;
};

int run(size_t depth, size_t bytes, int seconds, bool write, bool digests) {
  Shard shard("target", -1, 1, 0);
  AsioReactor reactor(2);
  Acceptor acceptor;
  auto listener = TcpListener::open(reactor, "127.0.0.1", 0, "", acceptor);
  VJBOD_CHECK(listener.has_value());
  TcpConnector connector(reactor);
  const std::string local = (*listener)->local();
  Endpoint endpoint{.address = "127.0.0.1",
                    .port = static_cast<uint16_t>(std::atoi(&local[local.find(':') + 1])),
                    .source_address = {},
                    .interface_name = {}};
  std::unique_ptr<DataMover> connected;
  auto attempt = connector.connect(endpoint, std::chrono::seconds(5), [&](auto result) {
    VJBOD_CHECK(result.has_value());
    connected = std::move(*result);
  });
  const Duration limit = std::chrono::seconds(10);
  reactor.run_until([&] { return connected != nullptr && bool(acceptor.socket); }, limit);

  std::unique_ptr<Target> target;
  std::promise<void> ready, gone;
  shard.reactor().post([&] {
    target = std::make_unique<Target>(shard.reactor(), std::move(acceptor.socket), bytes, digests);
    ready.set_value();
  });
  ready.get_future().wait();

  const double cpu = cpu_seconds();
  const TimePoint start = reactor.now();
  Initiator initiator(std::move(connected), depth, bytes, write, digests);
  reactor.run_until([&] { return reactor.now() - start > std::chrono::seconds(seconds); },
                    2 * std::chrono::seconds(seconds));
  const double elapsed = std::chrono::duration<double>(reactor.now() - start).count();
  const auto done = static_cast<double>(initiator.done());
  std::printf("%s of %zu bytes, depth %zu%s: %.0f/s, %.3f GB/s; initiator thread: %.2f s of CPU\n",
              write ? "writes" : "reads", bytes, depth, digests ? ", digests" : "", done / elapsed,
              done / elapsed * static_cast<double>(bytes) / 1e9, cpu_seconds() - cpu);
  initiator.stop();
  reactor.run_until([&] { return initiator.closed() && target->closed(); }, limit);
  shard.reactor().post([&] {
    target = nullptr;
    gone.set_value();
  });
  gone.get_future().wait();
  return 0;
}

}  // namespace
}  // namespace vjbod::transport

int main(int argc, char** argv) {
  const auto number = [&](int index, int otherwise) {
    return argc > index ? std::atoi(argv[index]) : otherwise;
  };
  const bool write = argc > 4 && std::strcmp(argv[4], "write") == 0;
  return vjbod::transport::run(static_cast<size_t>(number(1, 32)),
                               static_cast<size_t>(number(2, 4096)), number(3, 2), write, argc > 5);
}
