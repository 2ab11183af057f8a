// SPDX-License-Identifier: Apache-2.0
// iSER below the DataMover seam (RFC 7145): control PDUs are messages, the data of tasks moves by
// RDMA Read and Write that the target begins. The parts are ReceiveRing (what comes), SendQueue and
// MessagePool (what goes), InitiatorTasks and TargetTasks (whose memory may be reached, and what
// moves); this class joins them to a connection and to the owner. Owned by a session, on its
// reactor's thread; destroyed only before start() or after on_closed.
//
// A turn: completions are polled and their upcalls made; what those queued is posted at its end.
//
// The end: the connection is broken (its queue is in error), everything posted is reaped, windows
// are taken from everybody, the queue is destroyed, regions are given back, then on_closed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/runtime/reactor.h"
#include "common/transport/data_mover.h"
#include "common/transport/iser/initiator_tasks.h"
#include "common/transport/iser/iser_place.h"
#include "common/transport/iser/message_pool.h"
#include "common/transport/iser/receive_ring.h"
#include "common/transport/iser/send_queue.h"
#include "common/transport/iser/target_tasks.h"
#include "common/transport/iser/verbs_api.h"

namespace vjbod::transport {

class IserDataMover final : public DataMover, private rdma::ConnectionEvents, private Deferred {
 public:
  struct Options {
    // Of every posted receive, and what is declared. The RFC's default, which every target can take
    // in a login as well.
    uint32_t data_segment_bytes = 8192;
    // In full feature phase: a command window of 128, immediate commands, and what nobody asked
    // for.
    uint16_t receives = 192;
    uint32_t queue_requests = 512;  // RDMA, messages, windows; more wait here
  };
  static constexpr size_t login_receives = 4;
  static constexpr size_t login_messages = 4;
  // What a foreign initiator has posted in full feature phase, whatever it declares: the kernel's
  // and libiscsi's do.
  static constexpr uint32_t foreign_initiator_data_bytes = 128;
  // How long terminate() may go on to send what was queued.
  static constexpr Duration flush_time_max = std::chrono::seconds(1);
  // How long a cancelled transfer that is with the device already may take to end by itself; then
  // the connection is broken, which ends it for certain.
  static constexpr Duration cancel_time_max = std::chrono::milliseconds(200);
  // How long the device may take to give back what was posted.
  static constexpr Duration reap_time_max = std::chrono::seconds(1);
  static constexpr size_t completions_per_turn_max = 256;

  // Makes the queue and posts the login's receives: before connect() or accept(), since the peer
  // may send right after it. The connection's events stay the caller's until established().
  static Result<std::unique_ptr<IserDataMover>> make(IserPlace& place,
                                                     std::unique_ptr<rdma::Connection> connection,
                                                     Role role, const Options& options);
  ~IserDataMover() override;

  rdma::Connection& connection() { return *connection_; }
  // What goes into our connect request or its answer. `peer`: of the request that is answered.
  CmPrivateData private_data(const std::optional<CmPrivateData>& peer) const;
  // The connection stands. `peer` is what came with its request or answer.
  void established(const CmPrivateData& peer);

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
  uint32_t data_sequence_count(TaskHandle) const override { return 0; }
  void terminate(const Error& reason) override;

 private:
  enum class State {
    idle,
    running,
    flushing,  // terminate() was called: no upcall any more, what must arrive is sent
    reaping,   // the connection is broken; the device gives back what was posted
    closing,   // nothing is posted; on_closed is due
    closed,
  };
  // A message that came and waits for its turn.
  struct Arrived {
    uint64_t receive = 0;
    uint32_t bytes = 0;
    TaskHandle invalidating = no_task;  // the task whose memory must be taken back first
    void reset() {}
  };

  IserDataMover(IserPlace& place, std::unique_ptr<rdma::Connection> connection, Role role,
                const Options& options, std::shared_ptr<RegionCache> cache);
  Status prepare();

  // rdma::ConnectionEvents
  void on_cm(const rdma::CmReport& report) override;
  void on_completions() override;
  // Deferred: the end of a turn
  void run_deferred() override;

  // iser_completions.cc
  void poll();
  void take_completion(const rdma::Completion& completion);
  void take_failure(const rdma::Completion& completion);
  void finish_requests(uint64_t id);
  void arrived(const rdma::Completion& completion);
  TaskHandle answered_task(const rdma::Completion& completion, const Message& message);
  void deliver_arrived();
  void deliver(const Message& message);
  void deliver_command(const Message& message, ReceivedControl& received);
  bool deliver_response(const iscsi::ScsiResponse& response, ReceivedControl& received);
  void deliver_transfers_done();

  void send_message(const IserHeader& header, const iscsi::Pdu& pdu, ConstBytes data,
                    std::optional<uint32_t> invalidates, TaskHandle task);
  void queue_message(const MessagePool::Slot& slot, size_t bytes,
                     std::optional<uint32_t> invalidates, TaskHandle task);
  void move_waiting_messages();
  void post();
  void transfer_over(TaskHandle task);
  void started(TaskHandle task, const Status& status);
  void give_up_cancelled();
  void close_if_flushed();
  void close_now(const Error& reason);
  void close_if_reaped();
  void release();
  Error lost(std::string_view what) const;
  Error bad(const Error& found) const;

  Reactor& reactor_;
  const std::unique_ptr<rdma::Connection> connection_;
  const Role role_;
  const Options options_;
  const std::shared_ptr<RegionCache> cache_;
  std::string peer_, local_;
  State state_ = State::idle;
  DataMoverEvents* events_ = nullptr;
  iscsi::NegotiatedParameters parameters_;
  bool full_feature_ = false;
  std::optional<CmPrivateData::Own> peer_own_;
  bool invalidates_remotely_ = false;  // the target, the initiator's keys: agreed on

  ReceiveRing receives_;
  MessagePool messages_;
  SendQueue sends_;
  TargetTasks target_tasks_;
  InitiatorTasks initiator_tasks_;

  RingQueue<Arrived> arrived_;
  bool armed_ = false;
  bool poll_again_ = false;
  bool alive_ = false;       // something came in this turn
  bool queue_gone_ = false;  // destroyed
  std::vector<TaskHandle> transfers_done_;
  std::vector<TaskHandle> cancelled_;
  Timer timer_;  // flushing, reaping
  Timer cancel_timer_;
  std::optional<Error> lost_before_start_;
  Error reason_;
};

}  // namespace vjbod::transport
