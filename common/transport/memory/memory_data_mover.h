// SPDX-License-Identifier: Apache-2.0
// A DataMover whose other end is an object in the same process, for tests, simulation and local
// loopback. Every control PDU goes through the codec, as on a wire; data moves between the lent
// memories, at the moments that the link decides (memory_link.h). One of a pair; both ends and the
// link live on one reactor, whose time and timers are all they use.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/reactor.h"
#include "common/transport/data_mover.h"
#include "common/transport/memory/memory_link.h"

namespace vjbod::transport {

class MemoryDataMover final : public DataMover, private MemoryLinkEnd, private Deferred {
 public:
  MemoryDataMover(Reactor& reactor, std::shared_ptr<MemoryLink> link, Role role, std::string local,
                  std::string peer, Kind kind);
  ~MemoryDataMover() override;

  Capabilities capabilities() const override;
  std::string peer() const override { return peer_; }
  std::string local() const override { return local_; }
  void start(DataMoverEvents& events) override;
  void enable_full_feature(const iscsi::NegotiatedParameters& parameters,
                           const SequenceNumbers& numbers) override;
  void send_control(const iscsi::Pdu& pdu, ConstBytes data) override;
  TaskHandle begin_task(const iscsi::ScsiCommand& command, ConstBytes write, Bytes read) override;
  void put_data(TaskHandle task, uint64_t offset, ConstBytes data) override;
  void get_data(TaskHandle task, uint64_t offset, Bytes into) override;
  void cancel_transfer(TaskHandle task) override;
  void end_task(TaskHandle task) override;
  uint32_t data_sequence_count(TaskHandle task) const override;
  void terminate(const Error& reason) override;

 private:
  enum class State { idle, running, closing, closed };
  struct InitiatorTask {
    TaskHandle handle = no_task;
    ConstBytes write;
    Bytes read;
    uint64_t data_in_bytes = 0;
    uint64_t data_out_bytes = 0;
  };
  struct TargetTask {
    uint32_t itt = 0;
    uint32_t transfer = 0;  // counts them; what arrives for an earlier one is dropped
    bool moving = false;
    bool done = false;  // on_transfer_done is due
    uint64_t offset = 0;
    Bytes into;  // get_data
  };

  // MemoryLinkEnd
  bool ready_to_receive() const override { return state_ == State::running; }
  void on_message(const MemoryMessage& message) override;
  void on_messages_taken() override;
  void on_lent_read(const MemoryMessage& message) override;
  void on_severed(const Error& reason) override {
    if (state_ == State::running) close(reason);
  }
  // Deferred
  void run_deferred() override;

  void on_control(const MemoryMessage& message);
  void on_data_in(const MemoryMessage& message);
  void on_r2t(const MemoryMessage& message);
  void on_data_out(const MemoryMessage& message);
  void send(MemoryMessage message) { link_->send(role_, std::move(message)); }
  void fill(MemoryMessage& message, ConstBytes from) const;
  TargetTask& target_task(TaskHandle task);
  void transfer_over(TaskHandle handle, TargetTask& task);
  void close(const Error& reason);

  Reactor& reactor_;
  std::shared_ptr<MemoryLink> link_;
  const Kind kind_;
  const Role role_;
  const std::string local_, peer_;
  State state_ = State::idle;
  DataMoverEvents* events_ = nullptr;
  iscsi::NegotiatedParameters parameters_;
  bool full_feature_ = false;
  TaskHandle last_handle_ = no_task;
  std::map<uint32_t, InitiatorTask> initiator_tasks_;  // by ITT
  std::map<TaskHandle, TargetTask> target_tasks_;
  std::vector<TaskHandle> done_;
  Error reason_;
};

struct MemoryPair {
  std::shared_ptr<MemoryLink> link;
  std::unique_ptr<DataMover> initiator;
  std::unique_ptr<DataMover> target;
};
MemoryPair make_memory_pair(Reactor& reactor, const MemoryLinkOptions& options = {},
                            const std::string& initiator_name = "memory-initiator:1",
                            const std::string& target_name = "memory-target:3260");

}  // namespace vjbod::transport
