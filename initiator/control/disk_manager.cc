// SPDX-License-Identifier: Apache-2.0
// Disks that exist: showing, connecting and editing them. Their making is in disk_creation.cc,
// their ways are in disk_ways.cc, their end in disk_ending.cc.
#include "initiator/control/disk_manager.h"

#include <algorithm>
#include <utility>

#include "common/base/boot_id.h"
#include "common/config/values.h"
#include "common/iscsi/errc.h"
#include "common/rpc/errc.h"
#include "common/runtime/wall_clock.h"
#include "common/scsi/lun.h"
#include "initiator/control/disk_view.h"
#include "initiator/disk/geometry.h"

namespace vjbod::initiator {

DiskManager::DiskManager(Reactor& reactor, const HostConfig& config, HostState& state,
                         PeerManager& peers, rpc::EventLog& events, std::vector<HostShard*> shards)
    : reactor_(reactor),
      config_(config),
      state_(state),
      peers_(peers),
      events_(events),
      farewells_(reactor, state, peers, events),
      shards_(std::move(shards)),
      upgrade_timer_(reactor, [this] { look_for_upgrades(); }) {
  peers_.on_event = [this](const std::string& peer, const v1::Event& event) {
    if (event.kind() == "portals-changed") addresses_changed(peer);
    if (event.kind() == "lun-bound") renew_failed(peer);
  };
  peers_.on_reachable = [this](const std::string& peer) {
    farewells_.tell_all(peer);
    renew_failed(peer);
    // The peer is there again: what waits for it need not wait for its next attempt.
    for (auto& [name, running] : running_) {
      const auto record = state_.disks.find(name);
      if (record == state_.disks.end() || record->second.peer != peer) continue;
      if (running.last_state == DiskState::reconnecting) {
        running.cell->with_disk([](Disk& disk) { disk.reconnect(); });
      }
    }
  };
}

DiskManager::~DiskManager() = default;

void DiskManager::start() {
  look_for_upgrades();
  for (const auto& [name, record] : state_.disks) {
    if (record.phase != DiskRecord::Phase::ready) continue;
    Running& running = run(record, stored_paths(record));
    running.no_iser = obstacle_known_here(record);
    running.cell->start(record.wanted_connected, [this, name = name](vjbod::Status exported) {
      if (exported || !running_.contains(name)) return;
      running_[name].export_error = exported.error().text;
      event(rpc::Severity::error, "export-failed", name, exported.error().text);
    });
    // The stored way is tried at once; the peer may know better by now.
    if (record.wanted_connected)
      refresh_paths(
          name, [](DiskChoices&) {}, [](vjbod::Status) {});
  }
}

SessionConfig DiskManager::session_config(const DiskRecord& record) const {
  SessionConfig session;
  session.initiator_name = state_.initiator_iqn;
  session.target_name = record.target_iqn;
  const auto isid = from_hex(record.isid);
  for (size_t i = 0; isid && i < session.isid.size(); ++i) {
    session.isid[i] = static_cast<std::byte>((*isid)[i]);
  }
  if (record.chap) {
    session.chap = iscsi::ChapCredentials{record.chap->user, iscsi::Secret(record.chap->secret)};
  }
  if (record.mutual) {
    session.mutual =
        iscsi::ChapCredentials{record.mutual->user, iscsi::Secret(record.mutual->secret)};
  }
  if (record.peer.empty()) {
    session.chap_md5_retry = true;
    session.fence_lun = scsi::encode_lun(record.lun_number);
  } else {
    session.chap_algorithms.assign(iscsi::chap_algorithms_of_ours.begin(),
                                   iscsi::chap_algorithms_of_ours.end());
  }
  session.header_digest =
      record.choices.header_digest ? iscsi::DigestWish::require : iscsi::DigestWish::none;
  session.data_digest =
      record.choices.data_digest ? iscsi::DigestWish::require : iscsi::DigestWish::none;
  session.timers.connect_timeout = config_.limits.connect_timeout;
  session.timers.keepalive_idle = config_.limits.keepalive_idle;
  session.timers.keepalive_timeout = config_.limits.keepalive_timeout;
  return session;
}

DiskConfig DiskManager::disk_config(const DiskRecord& record,
                                    const std::vector<PathCandidate>& paths) const {
  DiskConfig disk;
  disk.name = record.name;
  disk.session = session_config(record);
  disk.paths = paths;
  disk.lun = record.lun_number;
  disk.policy.on_loss = record.choices.on_loss == "fail" ? OnLoss::fail : OnLoss::queue;
  disk.policy.io_timeout = std::chrono::seconds(record.choices.io_timeout_s);
  disk.identity = record.identity;
  disk.geometry = record.geometry;
  return disk;
}

std::string DiskManager::socket_path(const std::string& name) const {
  return config_.exports.socket_dir + "/" + name + ".sock";
}

// By the disk's UUID: a later disk of that name has another record.
std::string DiskManager::unflushed_path(const DiskRecord& record) const {
  return config_.exports.socket_dir + "/" + record.uuid + ".unflushed";
}

UnflushedRecord DiskManager::open_unflushed(const DiskRecord& record) {
  auto opened = UnflushedRecord::open(unflushed_path(record), kernel_boot_id());
  if (opened) return std::move(*opened);
  // The disk is of more use without it than not at all.
  event(
      rpc::Severity::error, "unflushed-not-recorded", record.name,
      fmt::format("{}; if the daemon is restarted together with the target's machine, writes that "
                  "are lost go unnoticed",
                  opened.error().text));
  return {};
}

DiskManager::Running& DiskManager::run(const DiskRecord& record,
                                       const std::vector<PathCandidate>& paths) {
  HostShard& home = *shards_[next_shard_ % shards_.size()];
  std::vector<Shard*> others;
  for (size_t i = 1; i < shards_.size(); ++i) {
    others.push_back(&shards_[(next_shard_ + i) % shards_.size()]->shard);
  }
  ++next_shard_;
  Running& running = running_[record.name];
  DiskConfig config = disk_config(record, paths);
  config.unflushed = open_unflushed(record);
  running.cell = DiskCell::make(reactor_, home, std::move(others), std::move(config),
                                socket_path(record.name), *this);
  if (!record.portals.empty()) running.host_interface = record.portals.front().interface_name;
  return running;
}

Result<DiskRecord*> DiskManager::find(const std::string& name) {
  const auto found = state_.disks.find(name);
  if (found == state_.disks.end()) {
    return fail(rpc::Errc::not_found, "there is no disk \"{}\"; `vjbod list` shows those there are",
                config::printable(name, config::name_bytes_max));
  }
  return &found->second;
}

Result<DiskRecord*> DiskManager::find_same(const std::string& name, const std::string& uuid) {
  auto record = find(name);
  if (!record || (*record)->uuid == uuid) return record;
  return fail(rpc::Errc::not_found, "disk {} was detached meanwhile; another one has its name",
              name);
}

Result<DiskManager::Running*> DiskManager::find_running(const std::string& name) {
  auto record = find(name);
  if (!record) return fail(record.error());
  const auto running = running_.find(name);
  if (running == running_.end()) {
    return fail(rpc::Errc::busy,
                "disk {} is not complete: create it again in the same way, or detach it", name);
  }
  if (running->second.busy) {
    return fail(rpc::Errc::busy, "disk {} is being detached or deleted right now", name);
  }
  return &running->second;
}

vjbod::Status DiskManager::change(const std::string& name,
                                  const std::function<void(DiskRecord&)>& edit) {
  return state_.change([&](HostState& state) { edit(state.disks.at(name)); });
}

vjbod::Status DiskManager::save(const std::string& what) {
  auto saved = state_.save();
  if (!saved) event(rpc::Severity::error, "state-not-saved", what, saved.error().text);
  return saved;
}

void DiskManager::event(rpc::Severity severity, const char* kind, const std::string& disk,
                        std::string text) {
  events_.add(severity, kind, disk, std::move(text), wall_now());
}

void DiskManager::on_disk_changed(const std::string& name, const DiskStatus& status) {
  const auto found = running_.find(name);
  const auto record = state_.disks.find(name);
  if (found == running_.end() || record == state_.disks.end()) return;
  Running& running = found->second;
  // What was under way when the disk was refused.
  if (running.refused && status.state != DiskState::failed) return;
  running.failed_by_secrets = status.state == DiskState::failed && status.last_error &&
                              status.last_error->code == iscsi::Errc::authentication;
  if (status.state == DiskState::connected) running.access_renewed = false;
  if (running.failed_by_secrets) renew_access(name);
  note_fallback(name, running, status);
  if (status.state != running.last_state) {
    running.last_state = status.state;
    const std::string why = status.last_error ? ": " + status.last_error->text : "";
    switch (status.state) {
      case DiskState::connected:
        event(rpc::Severity::info, "disk-connected", name,
              fmt::format("{} is connected by {} to {}", name,
                          status.connection ? transport::name_of(*status.connection) : "?",
                          status.portal));
        break;
      case DiskState::reconnecting:
        event(rpc::Severity::warning, "disk-lost", name, name + " lost its connection" + why);
        break;
      case DiskState::failed:
        event(rpc::Severity::error, "disk-failed", name, name + " has failed" + why);
        break;
      case DiskState::stale:
        event(rpc::Severity::error, "disk-stale", name, name + " is stale" + why);
        break;
      case DiskState::disconnected:
        event(rpc::Severity::info, "disk-disconnected", name, name + " is disconnected");
        break;
      default: break;
    }
  }
  // With nothing to fall back to, the first round decides what the person is told.
  const bool without_iser = status.state == DiskState::connecting && status.rdma_failure &&
                            status.next_attempt_in && !running.waiting.empty() &&
                            record->second.choices.transport == "iser";
  const bool steady = status.state == DiskState::connected || status.state == DiskState::failed ||
                      status.state == DiskState::stale || without_iser;
  if (!steady) return;
  for (auto& wait : std::exchange(running.waiting, {})) wait(status);
}

void DiskManager::on_disk_learned(const std::string& name, const DiskIdentity& identity,
                                  const BlockGeometry& geometry) {
  auto record = find(name);
  const auto running = running_.find(name);
  if (!record || running == running_.end()) return;
  DiskRecord found = **record;
  found.identity = identity;
  if (const DiskRecord* other = other_disk_of(found); other != nullptr && !(*record)->identity) {
    running->second.refused = true;
    running->second.cell->with_disk([other = other->name](Disk& disk) {
      disk.refuse({make_error_code(DiskErrc::attached_twice),
                   fmt::format("It is the LUN of disk {}, reached by another way: two disks of one "
                               "LUN would write over each other. Detach one of them.",
                               other)});
    });
    return;
  }
  (*record)->identity = identity;
  (*record)->geometry = geometry;
  (void)save(name);
}

void DiskManager::view(const std::string& name, DiskDone done) {
  auto record = find(name);
  if (!record) {
    done(fail(record.error()));
    return;
  }
  DiskViewInput input;
  std::string peer_address;
  if (!(*record)->peer.empty()) {
    if (auto peer = peers_.record((*record)->peer)) peer_address = (*peer)->address;
  } else if (!(*record)->portals.empty()) {
    peer_address = (*record)->portals.front().address;
  }
  const auto running = running_.find(name);
  if (running == running_.end()) {
    input.record = *record;
    input.peer_address = peer_address;
    input.now = wall_now();
    done(disk_view(input));
    return;
  }
  running->second.cell->status(
      [this, name, peer_address, done = std::move(done)](const DiskStatus& status, size_t) {
        auto still = find(name);
        const auto runs = running_.find(name);
        if (!still || runs == running_.end()) {
          done(fail(rpc::Errc::not_found, "disk {} has just been detached", name));
          return;
        }
        DiskViewInput now;
        now.record = *still;
        now.status = &status;
        now.peer_address = peer_address;
        now.export_error = runs->second.export_error;
        if (now.export_error.empty()) now.socket_path = runs->second.cell->socket_path();
        now.host_interface = runs->second.host_interface;
        now.remote_interface = runs->second.remote_interface;
        now.no_iser = runs->second.no_iser;
        now.fallbacks = runs->second.fallbacks;
        now.last_fallback = runs->second.last_fallback;
        now.now = wall_at(status.taken_at);
        done(disk_view(now));
      });
}

WallTime DiskManager::wall_at(TimePoint at) {
  using std::chrono::nanoseconds;
  const nanoseconds difference = wall_now().time_since_epoch() - reactor_.now().time_since_epoch();
  constexpr auto clock_set_min = std::chrono::seconds(1);
  if (std::chrono::abs(difference - wall_difference_) > clock_set_min)
    wall_difference_ = difference;
  return WallTime(
      std::chrono::duration_cast<WallTime::duration>(at.time_since_epoch() + wall_difference_));
}

void DiskManager::list(const std::string& name,
                       std::function<void(Result<v1::ListDisksResponse>)> done) {
  if (!name.empty()) {
    view(name, [done = std::move(done)](Result<v1::Disk> disk) {
      if (!disk) {
        done(fail(disk.error()));
        return;
      }
      v1::ListDisksResponse response;
      *response.add_disks() = std::move(*disk);
      done(std::move(response));
    });
    return;
  }
  if (state_.disks.empty()) {
    done(v1::ListDisksResponse());
    return;
  }
  struct Gathering {
    size_t left = 0;
    std::map<std::string, v1::Disk> disks;
    std::function<void(Result<v1::ListDisksResponse>)> done;
  };
  auto gathering = std::make_shared<Gathering>();
  gathering->left = state_.disks.size();
  gathering->done = std::move(done);
  std::vector<std::string> names;
  for (const auto& [disk, record] : state_.disks) names.push_back(disk);
  for (const std::string& disk : names) {
    view(disk, [gathering, disk](Result<v1::Disk> one) {
      if (one) gathering->disks[disk] = std::move(*one);
      if (--gathering->left > 0) return;
      v1::ListDisksResponse response;
      for (auto& [disk_name, shown] : gathering->disks) *response.add_disks() = std::move(shown);
      gathering->done(std::move(response));
    });
  }
}

void DiskManager::connect(const std::string& name, DiskDone done) {
  auto running = find_running(name);
  if (!running) {
    done(fail(running.error()));
    return;
  }
  auto saved = change(name, [](DiskRecord& disk) { disk.wanted_connected = true; });
  if (!saved) {
    done(fail(saved.error()));
    return;
  }
  (*running)->access_renewed = false;
  (*running)->refused = false;
  (*running)->cell->with_disk([](Disk& disk) { disk.connect(); });
  view(name, std::move(done));
}

void DiskManager::disconnect(const std::string& name, DiskDone done) {
  auto running = find_running(name);
  if (!running) {
    done(fail(running.error()));
    return;
  }
  auto saved = change(name, [](DiskRecord& disk) { disk.wanted_connected = false; });
  if (!saved) {
    done(fail(saved.error()));
    return;
  }
  (*running)->cell->with_disk([](Disk& disk) { disk.disconnect(); });
  view(name, std::move(done));
}

void DiskManager::edit(const v1::EditDiskRequest& request, DiskDone done) {
  const std::string name = request.disk();
  auto running = find_running(name);
  if (!running) {
    done(fail(running.error()));
    return;
  }
  const DiskRecord& record = **find(name);
  DiskChoices changed = record.choices;
  if (auto merged = merge_choices(request.options(), changed); !merged) {
    done(fail(merged.error()));
    return;
  }
  const bool way = changed.host_interface != record.choices.host_interface ||
                   changed.remote_interface != record.choices.remote_interface ||
                   changed.transport != record.choices.transport;
  const bool session = changed.header_digest != record.choices.header_digest ||
                       changed.data_digest != record.choices.data_digest;
  auto apply = [this, name, session, way, done](vjbod::Status ready) {
    if (!ready) {
      done(fail(ready.error()));
      return;
    }
    auto again = find_running(name);
    auto now = find(name);
    if (!again || !now) {
      done(fail(again ? now.error() : again.error()));
      return;
    }
    DiskPolicy policy;
    policy.on_loss = (*now)->choices.on_loss == "fail" ? OnLoss::fail : OnLoss::queue;
    policy.io_timeout = std::chrono::seconds((*now)->choices.io_timeout_s);
    auto config = std::make_shared<SessionConfig>(session_config(**now));
    const bool connected = (*again)->last_state == DiskState::connected;
    (*again)->cell->with_disk(
        [policy, config, again_now = connected && (session || way)](Disk& disk) {
          disk.set_policy(policy);
          disk.set_session(std::move(*config));
          if (again_now) disk.reconnect();
        });
    view(name, done);
  };
  if (way) {
    // What cannot be had is not kept.
    refresh_paths(
        name,
        [options = request.options()](DiskChoices& choices) {
          (void)merge_choices(options, choices);
        },
        apply);
  } else {
    apply(change(name, [&](DiskRecord& disk) { disk.choices = changed; }));
  }
}

}  // namespace vjbod::initiator
