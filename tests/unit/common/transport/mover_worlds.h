// SPDX-License-Identifier: Apache-2.0
// A connected pair of movers of each kind, for the contract suite. A world makes the pair, runs its
// reactor until something holds, and cuts the connection.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "common/iscsi/errc.h"
#include "common/runtime/asio_reactor.h"
#include "common/runtime/manual_reactor.h"
#include "common/transport/memory/memory_data_mover.h"
#include "common/transport/tcp/asio_stream.h"
#include "common/transport/tcp/tcp_data_mover.h"
#include "tests/support/iser_pair.h"

namespace vjbod::transport {

// Takes down everything a mover tells, and checks that no upcall comes from inside a downcall.
class Recorder final : public DataMoverEvents {
 public:
  struct Control {
    iscsi::Pdu pdu;
    std::vector<std::byte> data, header_bytes;
    TaskHandle task;
    uint64_t data_in_bytes, data_out_bytes;

    template <typename T>
    const T& as() const {
      return std::get<T>(pdu);
    }
  };

  void on_control(const ReceivedControl& received) override {
    note_upcall();
    controls.push_back({received.pdu,
                        {received.data.begin(), received.data.end()},
                        {received.header_bytes.begin(), received.header_bytes.end()},
                        received.task,
                        received.data_in_bytes,
                        received.data_out_bytes});
    if (control_hook) control_hook(controls.back());
  }
  void on_unknown_opcode(ConstBytes header) override {
    note_upcall();
    unknown.emplace_back(header.begin(), header.end());
  }
  void on_transfer_done(TaskHandle task) override {
    note_upcall();
    transfers_done.push_back(task);
    if (transfer_hook) transfer_hook(task);
  }
  void on_peer_alive() override {
    note_upcall();
    ++alive;
  }
  void on_closed(const Error& reason) override {
    note_upcall();
    closed = reason;
    ++times_closed;
    if (closed_hook) closed_hook();
  }

  std::vector<Control> controls;
  std::vector<std::vector<std::byte>> unknown;  // headers
  std::vector<TaskHandle> transfers_done;
  int alive = 0;
  int times_closed = 0;
  std::optional<Error> closed;
  std::function<void(const Control&)> control_hook;
  std::function<void(TaskHandle)> transfer_hook;
  std::function<void()> closed_hook;
  bool in_downcall = false;

 private:
  void note_upcall() {
    EXPECT_FALSE(in_downcall) << "an upcall from inside a downcall";
    EXPECT_EQ(times_closed, 0) << "an upcall after on_closed";
  }
};

template <DataPlacement placement>
class MemoryWorld {
 public:
  static constexpr bool tells_what_was_fetched = true;
  static void adjust(iscsi::NegotiatedParameters&) {}
  MemoryWorld() : pair_(make_memory_pair(reactor_, {.placement = placement})) {}

  std::unique_ptr<DataMover>& initiator() { return pair_.initiator; }
  std::unique_ptr<DataMover>& target() { return pair_.target; }
  bool run_until(const std::function<bool()>& done) {
    return reactor_.run_until(done, std::chrono::seconds(60));
  }
  // Long enough for everything that is under way to come.
  void settle() { reactor_.advance(std::chrono::seconds(5)); }
  void cut() { pair_.link->sever(); }
  // The initiator takes and gives nothing any more, but nobody is told.
  void stall_initiator() {
    pair_.link->stall(Role::initiator);
    pair_.link->stall(Role::target);
  }

 private:
  ManualReactor reactor_;
  MemoryPair pair_;
};

// The socket stays open, but nothing is read from it or written to it any more when told so.
class StallingStream final : public ByteStream, private ByteStreamEvents {
 public:
  explicit StallingStream(std::unique_ptr<ByteStream> stream) : stream_(std::move(stream)) {
    stream_->set_events(*this);
  }
  void stall() { stalled_ = true; }

  void set_events(ByteStreamEvents& events) override { events_ = &events; }
  IoResult read_some(Bytes first, Bytes second) override {
    return stalled_ ? IoResult{} : stream_->read_some(first, second);
  }
  IoResult write_some(std::span<const iovec> pieces) override {
    return stalled_ ? IoResult{} : stream_->write_some(pieces);
  }
  void wait_readable() override {
    if (!stalled_) stream_->wait_readable();
  }
  void wait_writable() override {
    if (!stalled_) stream_->wait_writable();
  }
  void shutdown_send() override { stream_->shutdown_send(); }
  void close() override { stream_->close(); }
  std::string peer() const override { return "initiator"; }
  std::string local() const override { return "target"; }

 private:
  void on_readable() override {
    if (!stalled_) events_->on_readable();
  }
  void on_writable() override {
    if (!stalled_) events_->on_writable();
  }

  std::unique_ptr<ByteStream> stream_;
  ByteStreamEvents* events_ = nullptr;
  bool stalled_ = false;
};

enum class TcpFlavour { plain, digests, small_segments };

// Over a socket pair, on the reactor of the daemons.
template <TcpFlavour flavour>
class TcpWorld {
 public:
  static constexpr bool tells_what_was_fetched = true;
  static void adjust(iscsi::NegotiatedParameters& parameters) {
    if (flavour == TcpFlavour::digests) parameters.header_digest = parameters.data_digest = true;
    if (flavour == TcpFlavour::small_segments) {
      // Nothing here is a multiple of a word or of anything else.
      parameters.our_max_recv_data_segment_length = 60001;
      parameters.peer_max_recv_data_segment_length = 60001;
      parameters.max_burst_length = 130003;
    }
  }

  TcpWorld() {
    std::array<int, 2> fds{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()), 0);
    initiator_fd_ = fds[0];
    auto stream =
        std::make_unique<StallingStream>(std::make_unique<AsioStream>(reactor_, Socket(fds[0])));
    initiator_stream_ = stream.get();
    initiator_ = std::make_unique<TcpDataMover>(reactor_, std::move(stream), Role::initiator);
    target_ = std::make_unique<TcpDataMover>(
        reactor_, std::make_unique<AsioStream>(reactor_, Socket(fds[1])), Role::target);
  }

  std::unique_ptr<DataMover>& initiator() { return initiator_; }
  std::unique_ptr<DataMover>& target() { return target_; }
  bool run_until(const std::function<bool()>& done) {
    return reactor_.run_until(done, std::chrono::seconds(20));
  }
  // Everything under way comes within a few turns: both ends are on this thread, and the kernel
  // has no delay between them.
  void settle() {
    int turns = 0;
    reactor_.run_until(
        [&] {
          reactor_.post([] {});  // the next turn does not wait
          return ++turns > 100;
        },
        std::chrono::seconds(20));
  }
  void cut() { ::shutdown(initiator_fd_, SHUT_RDWR); }
  void stall_initiator() { initiator_stream_->stall(); }

 private:
  AsioReactor reactor_{1};
  int initiator_fd_ = -1;
  StallingStream* initiator_stream_ = nullptr;
  std::unique_ptr<DataMover> initiator_, target_;
};

enum class IserFlavour { windows, regions, small_messages };

// Over RDMA devices in memory: with memory windows, without, and with devices whose messages are
// so short that each transfer takes several.
template <IserFlavour flavour>
class IserWorld {
 public:
  // An initiator does not see the target's RDMA Reads.
  static constexpr bool tells_what_was_fetched = false;
  static void adjust(iscsi::NegotiatedParameters&) {}

  IserWorld() : pair_(options()) {
    initiator_ = std::move(pair_.initiator);
    target_ = std::move(pair_.target);
  }
  ~IserWorld() {
    initiator_.reset();
    target_.reset();
    for (const rdma::FakeDevice* device : {&pair_.initiator_device, &pair_.target_device}) {
      EXPECT_EQ(device->regions.size(), 0U);
      EXPECT_EQ(device->windows, 0U);
      EXPECT_EQ(device->queues, 0U);
    }
  }

  std::unique_ptr<DataMover>& initiator() { return initiator_; }
  std::unique_ptr<DataMover>& target() { return target_; }
  bool run_until(const std::function<bool()>& done) {
    return pair_.reactor.run_until(done, std::chrono::seconds(60));
  }
  void settle() { pair_.reactor.advance(std::chrono::seconds(5)); }
  void cut() { pair_.network.sever(); }
  void stall_initiator() { pair_.network.stall(); }

 private:
  static IserPairOptions options() {
    IserPairOptions options;
    options.memory_windows = flavour == IserFlavour::windows;
    if (flavour == IserFlavour::small_messages) options.message_bytes_max = 10001;
    options.initiator.data_segment_bytes = options.target.data_segment_bytes = 64 * 1024;
    return options;
  }

  IserPair pair_;
  std::unique_ptr<DataMover> initiator_, target_;
};

}  // namespace vjbod::transport
