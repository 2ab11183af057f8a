// SPDX-License-Identifier: Apache-2.0
// A connected pair of movers of each kind, for the contract suite. A world makes the pair, runs its
// reactor until something holds, and cuts the connection.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/iscsi/errc.h"
#include "common/runtime/manual_reactor.h"
#include "common/transport/memory/memory_data_mover.h"

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
  MemoryWorld() : pair_(make_memory_pair(reactor_, {.placement = placement})) {}

  std::unique_ptr<DataMover>& initiator() { return pair_.initiator; }
  std::unique_ptr<DataMover>& target() { return pair_.target; }
  bool run_until(const std::function<bool()>& done) {
    return reactor_.run_until(done, std::chrono::seconds(60));
  }
  // Long enough for everything that is under way to come.
  void settle() { reactor_.advance(std::chrono::seconds(5)); }
  void cut() { pair_.link->sever(); }
  // The peer takes and gives nothing any more, but nobody is told.
  void stall_initiator() {
    pair_.link->stall(Role::initiator);
    pair_.link->stall(Role::target);
  }

 private:
  ManualReactor reactor_;
  MemoryPair pair_;
};

}  // namespace vjbod::transport
