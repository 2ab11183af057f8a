// SPDX-License-Identifier: Apache-2.0
// The disks of this box: making, attaching, showing and forgetting them. Joins the state file, the
// peers and the cells on the shards. What a person asked for is saved before it is done, so a crash
// in between is picked up again. Main reactor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "initiator/config.h"
#include "initiator/control/disk_cell.h"
#include "initiator/control/farewells.h"
#include "initiator/control/host_state.h"
#include "initiator/control/path_choice.h"
#include "initiator/control/peer_manager.h"
#include "vjbod/v1/host.pb.h"

namespace vjbod::initiator {

// Puts what is set in `options` over `choices`. An error for what does not exist, or not in this
// version.
vjbod::Status merge_choices(const v1::DiskOptions& options, DiskChoices& choices);

// As they are kept for the next start.
std::vector<PortalRecord> portals_of(const std::vector<PathCandidate>& paths);

class DiskManager final : private DiskCellEvents {
 public:
  using DiskDone = std::function<void(Result<v1::Disk>)>;
  using StatusDone = std::function<void(vjbod::Status)>;
  // "step" is a stable token; see DiskProgress.
  using Progress = std::function<void(const std::string& step, const std::string& text)>;

  DiskManager(Reactor& reactor, const HostConfig& config, HostState& state, PeerManager& peers,
              rpc::EventLog& events, std::vector<HostShard*> shards);
  ~DiskManager();

  void start();  // attaches every disk of the state again, each on its own

  void create(const v1::CreateDiskRequest& request, Progress progress, DiskDone done);
  void attach(const v1::AttachDiskRequest& request, Progress progress, DiskDone done);
  // `name` empty: all.
  void list(const std::string& name, std::function<void(Result<v1::ListDisksResponse>)> done);
  void connect(const std::string& name, DiskDone done);
  void disconnect(const std::string& name, DiskDone done);
  void reconnect(const v1::ReconnectDiskRequest& request, DiskDone done);
  void edit(const v1::EditDiskRequest& request, DiskDone done);
  void detach(const std::string& name, bool force, StatusDone done);
  void remove(const std::string& name, StatusDone done);  // and its LUN
  // Addresses came or went, of `peer` or (empty) of this box.
  void addresses_changed(const std::string& peer);
  // Links of this box came or went: a disk with another way leaves one that is dead.
  void leave_dead_interfaces();
  // Closes all disks without forgetting them. No disk is brought up any more.
  void shutdown(std::function<void()> done);

  size_t count() const { return state_.disks.size(); }

 private:
  // What is known of a disk besides its record.
  struct Running {
    std::shared_ptr<DiskCell> cell;
    std::string export_error;
    std::string host_interface, remote_interface;
    bool busy = false;  // a detach or the like is under way
    DiskState last_state = DiskState::disconnected;
    std::vector<std::function<void(const DiskStatus&)>> waiting;  // for its next steady state
    bool access_renewed = false;  // since it was connected last, or since a person spoke
    bool failed_by_secrets = false;
    bool refused = false;  // it is another disk's LUN
    // Why there is no way by iSER, where one is wanted; what failed over a way is in the status.
    std::optional<NoIser> no_iser;
    uint32_t fallbacks = 0;  // sessions over iSCSI where iSER was wanted
    WallTime last_fallback{};
    uint64_t last_generation = 0;  // of those sessions
    uint64_t operations_seen = 0;  // when it was looked at for an upgrade
  };
  struct Job;  // a create or an attach under way

  void on_disk_changed(const std::string& name, const DiskStatus& status) override;
  void on_disk_learned(const std::string& name, const DiskIdentity& identity,
                       const BlockGeometry& geometry) override;

  using LunEnding = FarewellRecord::Ending;
  void end(const std::string& name, bool force, LunEnding ending, StatusDone done);
  void forget(const std::string& name, LunEnding ending, StatusDone done);

  Result<DiskRecord> new_record(const std::string& name, const v1::DiskOptions& options) const;
  void choose_path(std::shared_ptr<Job> job, std::function<void()> next);
  void provision(std::shared_ptr<Job> job);
  void open_lun(std::shared_ptr<Job> job, const std::string& lun);
  vjbod::Status take_access(DiskRecord& record, const v1::LunAccess& access);
  // The other disk that stands for the LUN of `record`, if there is one. Two of one LUN would each
  // replay their writes over the other's.
  const DiskRecord* other_disk_of(const DiskRecord& record) const;
  // The peer may have made new secrets for a disk that failed by them.
  void renew_access(const std::string& name);
  void renew_failed(const std::string& peer);
  void take_renewed(const std::string& name, const v1::LunAccess& access);
  void bring_up(std::shared_ptr<Job> job);
  void wait_connected(std::shared_ptr<Job> job);
  void refused(std::shared_ptr<Job> job, const DiskStatus& status);
  void finish(std::shared_ptr<Job> job, Result<v1::Disk> result);
  // The record that the job began with; an error when it was detached meanwhile.
  Result<DiskRecord*> record_of(const Job& job);
  // Takes back the record that the job made, and no other.
  void take_back(const Job& job);
  // The peer has answered, or may have done what was asked, for a record that is gone.
  void let_go(const Job& job, const Result<v1::LunAccess>& access);
  // The daemon is stopping: what is saved of the job is done at the next start.
  void put_off(std::shared_ptr<Job> job);

  std::string socket_path(const std::string& name) const;
  std::string unflushed_path(const DiskRecord& record) const;
  UnflushedRecord open_unflushed(const DiskRecord& record);
  Running& run(const DiskRecord& record, const std::vector<PathCandidate>& paths);
  DiskConfig disk_config(const DiskRecord& record, const std::vector<PathCandidate>& paths) const;
  SessionConfig session_config(const DiskRecord& record) const;
  std::vector<PathCandidate> stored_paths(const DiskRecord& record) const;
  // --- disk_ways.cc ---
  // What is asked for besides the choices of the record, put over those that it has when the answer
  // is there: they may change meanwhile.
  using EditChoices = std::function<void(DiskChoices&)>;
  using PathsDone = std::function<void(Result<PathChoice>, const DiskChoices& choices)>;
  // The ways to the peer (or the foreign target) as they are now.
  void find_paths(const std::string& name, EditChoices edit, PathsDone done);
  // Saved with the choices that led to them, then given to the disk.
  vjbod::Status use_paths(const std::string& name, const DiskChoices& choices,
                          const PathChoice& choice);
  void refresh_paths(const std::string& name, EditChoices edit, StatusDone done);
  Result<PathChoice> foreign_paths(const DiskRecord& record, const DiskChoices& choices) const;
  // Of the stored ways, for as long as the peer has not been asked.
  std::optional<NoIser> obstacle_known_here(const DiskRecord& record) const;
  void note_fallback(const std::string& name, Running& running, const DiskStatus& status);
  void look_for_upgrades();
  void upgrade_if_idle(const std::string& name, const DiskStatus& status);
  void view(const std::string& name, DiskDone done);
  // By a difference that is kept until the wall clock is set: the same moment is told as the same
  // time with each look.
  WallTime wall_at(TimePoint at);
  Result<DiskRecord*> find(const std::string& name);
  // The record that was `uuid`'s when something began to wait: another disk may have its name now.
  Result<DiskRecord*> find_same(const std::string& name, const std::string& uuid);
  Result<Running*> find_running(const std::string& name);
  // A change that cannot be saved did not happen.
  vjbod::Status change(const std::string& name, const std::function<void(DiskRecord&)>& edit);
  vjbod::Status save(const std::string& what);
  void event(rpc::Severity severity, const char* kind, const std::string& disk, std::string text);

  Reactor& reactor_;
  const HostConfig& config_;
  HostState& state_;
  PeerManager& peers_;
  rpc::EventLog& events_;
  Farewells farewells_;
  const std::vector<HostShard*> shards_;
  std::map<std::string, Running> running_;
  size_t next_shard_ = 0;
  std::chrono::nanoseconds wall_difference_{};  // of the wall clock to the reactors' clock
  bool stopping_ = false;
  Timer upgrade_timer_;
};

}  // namespace vjbod::initiator
