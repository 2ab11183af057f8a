// SPDX-License-Identifier: Apache-2.0
// The inside of Disk: joins table, translator, probe and supervisor. Included by disk.cc (control)
// and disk_io.cc (the way of a request) only.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "initiator/disk/disk.h"
#include "initiator/disk/probe.h"
#include "initiator/disk/request_table.h"
#include "initiator/session/supervisor.h"

namespace vjbod::initiator {

// The whole probe, with its retries. The session's own command timeout is far longer.
inline constexpr Duration probe_timeout = std::chrono::seconds(15);
// How long a reconnect that a person asked for may take before on_loss=fail fails I/O.
inline constexpr Duration planned_reconnect_grace = std::chrono::seconds(10);
// One failed command is logged, those of the next seconds are counted.
inline constexpr Duration failure_log_interval = std::chrono::seconds(5);
// Zeros sent over the wire by one command.
inline constexpr size_t zeros_bytes = size_t{1} << 20;

class Disk::Impl final : private SupervisorClient, private ChannelCommandOwner, private Deferred {
 public:
  Impl(Reactor& reactor, const Connectors& connectors, DiskConfig config, DiskObserver& observer);
  ~Impl();

  void connect();
  void forget_identity();
  void disconnect();
  void reconnect();
  void use_only_interfaces(const std::vector<std::string>& usable);
  void take_over(const Error& reason);
  void refuse(const Error& reason);
  void detach(std::function<void()> done);
  void set_policy(const DiskPolicy& policy);
  void set_paths(std::vector<PathCandidate> paths) { supervisor_.set_paths(std::move(paths)); }
  void set_session(SessionConfig session);
  void forget_rdma_failures() { supervisor_.forget_rdma_failures(); }
  DiskStatus status() const;

  Reactor& reactor() { return reactor_; }
  bool geometry_known() const { return geometry_known_; }
  const BlockGeometry& geometry() const { return geometry_; }
  void submit(BlockRequest& request);
  void add_observer(BlockDeviceObserver& observer) { observers_.push_back(&observer); }
  void remove_observer(BlockDeviceObserver& observer) { std::erase(observers_, &observer); }

 private:
  // --- disk.cc: connection ---
  // SupervisorClient
  void on_probe(ScsiChannel& channel, uint64_t generation) override;
  void on_online() override;
  void on_window_open() override;
  void on_session_down(uint64_t generation, const Error& reason) override;
  void on_supervisor_changed() override {
    status_news_ = true;
    wake();
  }

  void probe_done(Result<ProbeResult> result);
  void adopt(const ProbeResult& result);
  void connection_lost();
  DiskState display_state() const;
  void notice_state();
  void on_timer();
  void arm_timer();
  void finish_detach();

  // --- disk_io.cc: requests ---
  // Deferred: once at the end of each loop turn in which something happened.
  void run_deferred() override;
  void wake() { reactor_.defer(*this); }
  // ChannelCommandOwner
  void on_command_done(ChannelCommand& command, const ChannelCompletion& completion) override;

  int check(const BlockRequest& request) const;         // 0, or the errno that it gets at once
  int refusal() const;                                  // the errno that all I/O gets now, or 0
  void answer(BlockRequest& request, int errno_value);  // at the end of this turn
  void answer_answered();
  void fail_waiting_and_queued(int errno_value);
  void wait(BlockRequest& request, bool in_front);
  void stop_waiting(BlockRequest& request);
  void cut_waiting();
  void cut(BlockRequest& request, RequestSlot& slot);
  void issue_queued();
  void put_back(RequestSlot& slot, Duration delay);
  void part_done(RequestSlot& slot);
  void piece_done(RequestSlot& slot, int errno_value);
  void step_done(BlockRequest& request);
  bool needs_flush(const BlockRequest& request) const;
  void finish(BlockRequest& request, int errno_value);
  void log_failure(const RequestSlot& slot, const ChannelCompletion& completion, int errno_value);

  Reactor& reactor_;
  DiskObserver& observer_;
  PrefixLogger log_;
  const std::string name_;
  const uint16_t lun_;
  std::array<std::byte, 8> lun_field_;
  DiskPolicy policy_;
  std::string target_name_;
  iscsi::Isid isid_;
  bool recovering_;

  // What the target is.
  std::optional<DiskIdentity> identity_;
  bool geometry_known_ = false;
  BlockGeometry geometry_;
  TargetFeatures features_;
  std::string vendor_, product_, revision_;
  std::vector<BlockDeviceObserver*> observers_;

  // Requests.
  RequestTable table_;
  IntrusiveList<BlockRequest> waiting_;   // not all of it is cut into pieces yet
  IntrusiveList<BlockRequest> answered_;  // without the target: with progress.errno_value
  size_t waiting_count_ = 0;
  std::unique_ptr<std::byte, decltype(&std::free)> zeros_;
  UnflushedRecord unflushed_;
  int flush_error_ = 0;  // sticks until connect(): what was lost stays lost
  DiskCounters counters_;
  std::optional<TimePoint> failure_logged_at_;
  uint64_t failures_unlogged_ = 0;
  bool drop_waiting_ = false;  // what waits was meant for another LUN

  // Connection.
  ScsiChannel* channel_ = nullptr;  // of generation_, while there is one
  uint64_t generation_ = 0;
  bool online_ = false;  // commands may be issued
  bool ever_online_ = false;
  bool dead_ = false;     // acknowledged writes were lost: everything fails until connect()
  bool failing_ = false;  // the connection is away for longer than the policy waits
  bool probe_again_ = false;
  bool planned_ = false;  // a person asked for the reconnect that is under way
  bool taken_over_ = false;
  bool refused_ = false;
  bool detaching_ = false;
  std::function<void()> detach_done_;
  std::optional<TimePoint> lost_since_;
  std::optional<TimePoint> paused_until_;  // the target is busy
  std::optional<TimePoint> probe_deadline_;
  uint64_t reconnects_ = 0;
  std::optional<std::pair<Error, TimePoint>> own_error_;  // beside the supervisor's
  DiskState shown_state_ = DiskState::disconnected;
  TimePoint shown_since_{};
  bool status_news_ = false;
  bool geometry_news_ = false;
  bool identity_news_ = false;
  Timer timer_;

  Probe probe_;
  Supervisor supervisor_;
};

}  // namespace vjbod::initiator
