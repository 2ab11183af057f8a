// SPDX-License-Identifier: Apache-2.0
// The ways of disks that exist: found anew when addresses or RDMA come and go, chosen again when a
// person asks for it, and left for iSER when it is idle and allowed to.
#include <algorithm>
#include <utility>

#include "common/net/route.h"
#include "common/rpc/errc.h"
#include "common/runtime/wall_clock.h"
#include "initiator/control/disk_manager.h"
#include "initiator/control/disk_view.h"

namespace vjbod::initiator {

namespace {

// How often a disk that may go back to iSER by itself is looked at, and how long it must have been
// idle by that.
constexpr Duration upgrade_interval = std::chrono::seconds(30);

uint64_t operations_of(const DiskCounters& counters) {
  uint64_t operations = 0;
  for (const OperationCounters& one : counters.by_operation) operations += one.operations;
  return operations;
}

}  // namespace

std::vector<PortalRecord> portals_of(const std::vector<PathCandidate>& paths) {
  std::vector<PortalRecord> portals;
  for (const PathCandidate& path : paths)
    portals.push_back({path.endpoint.address, path.endpoint.port, path.endpoint.source_address,
                       path.endpoint.interface_name,
                       path.kind == transport::Kind::iser ? "iser" : "iscsi"});
  return portals;
}

std::vector<PathCandidate> DiskManager::stored_paths(const DiskRecord& record) const {
  std::vector<PathCandidate> paths;
  for (const PortalRecord& portal : record.portals) {
    PathCandidate path;
    path.kind = portal.transport == "iser" ? transport::Kind::iser : transport::Kind::iscsi;
    path.endpoint.address = portal.address;
    path.endpoint.port = portal.port;
    path.endpoint.source_address = portal.source_address;
    path.endpoint.interface_name = portal.interface_name;
    paths.push_back(std::move(path));
  }
  return paths;
}

std::optional<NoIser> DiskManager::obstacle_known_here(const DiskRecord& record) const {
  if (record.portals.empty() || record.choices.transport == "iscsi") return std::nullopt;
  const PortalRecord& portal = record.portals.front();
  auto interfaces = net::list_interfaces();
  if (portal.transport == "iser" || !interfaces) return std::nullopt;
  return rdma_obstacle_here(*interfaces,
                            portal.source_address.empty()
                                ? net::source_address_towards(portal.address, portal.interface_name)
                                : portal.source_address);
}

void DiskManager::addresses_changed(const std::string& peer) {
  for (const auto& [name, record] : state_.disks) {
    const bool concerned = peer.empty() || record.peer == peer;
    if (concerned && record.wanted_connected && running_.contains(name))
      refresh_paths(
          name, [](DiskChoices&) {}, [](vjbod::Status) {});
  }
}

void DiskManager::leave_dead_interfaces() {
  const auto interfaces = net::list_interfaces();
  if (!interfaces) return;
  std::vector<std::string> usable;
  for (const net::Interface& interface : *interfaces)
    if (interface.up) usable.push_back(interface.name);
  for (const auto& [name, running] : running_) {
    const auto record = state_.disks.find(name);
    if (record == state_.disks.end()) continue;
    const bool another_way = std::ranges::any_of(record->second.portals, [&](const auto& portal) {
      return portal.interface_name.empty() || std::ranges::count(usable, portal.interface_name) > 0;
    });
    if (another_way)
      running.cell->with_disk([usable](Disk& disk) { disk.use_only_interfaces(usable); });
  }
}

Result<PathChoice> DiskManager::foreign_paths(const DiskRecord& record,
                                              const DiskChoices& choices) const {
  auto interfaces = net::list_interfaces();
  if (!interfaces) return fail(interfaces.error());
  const PortalRecord& portal = record.portals.front();
  return choose_foreign_paths(*interfaces, portal.address, portal.port,
                              net::source_address_towards(portal.address, choices.host_interface),
                              choices);
}

void DiskManager::find_paths(const std::string& name, EditChoices edit, PathsDone done) {
  auto record = find(name);
  if (!record) {
    done(fail(record.error()), {});
    return;
  }
  const std::string peer = (*record)->peer;
  if (peer.empty()) {
    DiskChoices choices = (*record)->choices;
    edit(choices);
    done(foreign_paths(**record, choices), choices);
    return;
  }
  peers_.describe(peer, [this, name, uuid = (*record)->uuid, peer, edit = std::move(edit),
                         done = std::move(done)](Result<v1::DescribeResponse> described) {
    auto now = find_same(name, uuid);
    if (!now) {
      done(fail(now.error()), {});
      return;
    }
    DiskChoices choices = (*now)->choices;
    edit(choices);
    auto interfaces = net::list_interfaces();
    auto peer_record = peers_.record(peer);
    if (!described)
      done(fail(described.error()), choices);
    else if (!interfaces || !peer_record)
      done(fail(interfaces ? peer_record.error() : interfaces.error()), choices);
    else
      done(choose_paths(*interfaces, *described, (*peer_record)->address, choices), choices);
  });
}

vjbod::Status DiskManager::use_paths(const std::string& name, const DiskChoices& choices,
                                     const PathChoice& choice) {
  auto record = find(name);
  const auto running = running_.find(name);
  if (!record || running == running_.end())
    return fail(rpc::Errc::not_found, "disk {} has just been detached", name);
  running->second.host_interface = choice.host_interface;
  running->second.remote_interface = choice.remote_interface;
  running->second.no_iser = choice.no_iser;
  const std::vector<PortalRecord> portals = portals_of(choice.candidates);
  if ((*record)->portals == portals && (*record)->choices == choices) return {};
  auto saved = change(name, [&](DiskRecord& disk) {
    disk.choices = choices;
    disk.portals = portals;
  });
  if (!saved) return saved;
  const bool waits = running->second.last_state == DiskState::reconnecting;
  running->second.cell->with_disk([paths = choice.candidates, waits](Disk& disk) {
    disk.set_paths(paths);
    if (waits) disk.reconnect();
  });
  return {};
}

void DiskManager::refresh_paths(const std::string& name, EditChoices edit, StatusDone done) {
  find_paths(
      name, std::move(edit),
      [this, name, done = std::move(done)](Result<PathChoice> choice, const DiskChoices& choices) {
        done(choice ? use_paths(name, choices, *choice) : fail(choice.error()));
      });
}

void DiskManager::reconnect(const v1::ReconnectDiskRequest& request, DiskDone done) {
  const std::string name = request.disk();
  if (auto running = find_running(name); !running) {
    done(fail(running.error()));
    return;
  }
  const bool by_iser = request.transport() == v1::TRANSPORT_ISER;
  EditChoices edit = [transport = request.transport(), by_iser](DiskChoices& choices) {
    if (transport == v1::TRANSPORT_ISCSI) choices.transport = "iscsi";
    if (transport == v1::TRANSPORT_AUTO) choices.transport = "auto";
    // It goes to iSER now; what it may fall back to later stays as it was, but for "iscsi".
    if (by_iser && choices.transport == "iscsi") choices.transport = "auto";
  };
  find_paths(
      name, std::move(edit),
      [this, name, uuid = (*find(name))->uuid, by_iser, done = std::move(done)](
          Result<PathChoice> choice, const DiskChoices& choices) {
        auto record = find_same(name, uuid);
        if (!record || !find_running(name)) {
          done(fail(rpc::Errc::not_found, "disk {} has just been detached", name));
          return;
        }
        if (!choice) {
          // A peer that cannot be asked may still serve the disk: go on with the ways known.
          PathChoice known;
          for (PathCandidate& path : stored_paths(**record))
            if ((path.kind == transport::Kind::iser ? choices.transport != "iscsi"
                                                    : choices.transport != "iser"))
              known.candidates.push_back(std::move(path));
          const bool same = (*record)->choices == choices && !by_iser;
          const bool possible =
              std::ranges::any_of(known.candidates, [&](const PathCandidate& path) {
                return !by_iser || path.kind == transport::Kind::iser;
              });
          if (!same && !possible) {
            done(fail(choice.error()));
            return;
          }
          known.host_interface = running_.at(name).host_interface;
          known.remote_interface = running_.at(name).remote_interface;
          known.no_iser = running_.at(name).no_iser;
          if (known.candidates.empty()) known.candidates = stored_paths(**record);
          choice = std::move(known);
        }
        if (by_iser && choice->no_iser) {
          done(fail(rpc::Errc::iser_unavailable,
                    "disk {} stays as it is; iSER cannot be used ({}): {}", name,
                    transport::rdma_reason_of(choice->no_iser->code), choice->no_iser->text));
          return;
        }
        if (auto used = use_paths(name, choices, *choice); !used) {
          done(fail(used.error()));
          return;
        }
        running_.at(name).cell->with_disk([](Disk& disk) {
          disk.forget_rdma_failures();
          disk.reconnect();
        });
        view(name, done);
      });
}

// Once for each session over iSCSI where iSER was wanted.
void DiskManager::note_fallback(const std::string& name, Running& running,
                                const DiskStatus& status) {
  if (status.state != DiskState::connected || status.connection != transport::Kind::iscsi ||
      status.generation == running.last_generation ||
      state_.disks.at(name).choices.transport == "iscsi")
    return;
  running.last_generation = status.generation;
  ++running.fallbacks;
  running.last_fallback = wall_now();
  const FallbackReason why = fallback_reason(running.no_iser, status);
  event(rpc::Severity::warning, "iser-fallback", name,
        fmt::format("{} runs over iSCSI instead of iSER ({}): {}", name, why.code, why.text));
}

void DiskManager::look_for_upgrades() {
  if (stopping_) return;
  upgrade_timer_.arm_after(upgrade_interval);
  for (const auto& [name, running] : running_) {
    const auto record = state_.disks.find(name);
    if (record == state_.disks.end() || record->second.choices.upgrade != "idle" ||
        record->second.choices.transport != "auto" || running.busy ||
        running.last_state != DiskState::connected)
      continue;
    running.cell->status(
        [this, name = name](const DiskStatus& status, size_t) { upgrade_if_idle(name, status); });
  }
}

void DiskManager::upgrade_if_idle(const std::string& name, const DiskStatus& status) {
  const auto running = running_.find(name);
  if (running == running_.end() || stopping_) return;
  const uint64_t operations = operations_of(status.counters);
  const bool idle = operations == std::exchange(running->second.operations_seen, operations) &&
                    status.queued_ios == 0 && status.active_ios == 0;
  if (!idle || status.state != DiskState::connected || status.rdma_tried_in ||
      status.connection != transport::Kind::iscsi)
    return;
  find_paths(
      name, [](DiskChoices&) {},
      [this, name](Result<PathChoice> choice, const DiskChoices& choices) {
        if (!choice || choice->no_iser || !use_paths(name, choices, *choice)) return;
        event(rpc::Severity::info, "iser-upgrade", name,
              fmt::format("{} is idle and tries iSER again", name));
        running_.at(name).cell->with_disk([](Disk& disk) { disk.reconnect(); });
      });
}

}  // namespace vjbod::initiator
