// SPDX-License-Identifier: Apache-2.0
// New secrets for disks that failed by theirs: the peer has bound the LUN to this host anew. Only
// what is bound already is asked for, so a LUN that was taken away stays away.
#include <utility>

#include "common/rpc/errc.h"
#include "initiator/control/disk_manager.h"

namespace vjbod::initiator {

namespace {

constexpr Duration renew_timeout = std::chrono::seconds(15);

}  // namespace

void DiskManager::renew_failed(const std::string& peer) {
  for (const auto& [name, record] : state_.disks) {
    const auto running = running_.find(name);
    if (record.peer == peer && running != running_.end() &&
        running->second.last_state != DiskState::connected)
      renew_access(name);
  }
}

void DiskManager::renew_access(const std::string& name) {
  const auto record = find(name);
  const auto running = running_.find(name);
  if (!record || running == running_.end() || (*record)->peer.empty() ||
      (*record)->phase != DiskRecord::Phase::ready || !(*record)->wanted_connected || stopping_ ||
      std::exchange(running->second.access_renewed, true))
    return;
  auto link = peers_.link((*record)->peer);
  if (!link) return;
  v1::OpenLunRequest request;
  request.set_lun((*record)->lun_name);
  request.set_as_bound(true);
  (*link)->call<v1::OpenLunRequest, v1::LunAccess>(
      &PeerLink::Service::Stub::async_interface::OpenLun, request, renew_timeout,
      [this, name, uuid = (*record)->uuid](Result<v1::LunAccess> access) {
        const auto runs = running_.find(name);
        if (!find_same(name, uuid) || runs == running_.end() || stopping_) return;
        if (access) return take_renewed(name, *access);
        // Asked again when the peer is there, or says that the LUN was bound.
        runs->second.access_renewed = false;
        event(rpc::Severity::error, "access-refused", name,
              fmt::format("the peer gives no access to the LUN of {}: {}", name,
                          access.error().text));
      });
}

void DiskManager::take_renewed(const std::string& name, const v1::LunAccess& access) {
  DiskRecord fresh = state_.disks.at(name);
  const auto identity = fresh.identity;
  vjbod::Status taken = take_access(fresh, access);
  if (taken && identity && identity->naa != fresh.identity->naa)
    taken = fail(rpc::Errc::identity_mismatch, "another LUN has the name {} now", fresh.lun_name);
  if (taken) {
    if (identity) fresh.identity = identity;  // its size is told by the LUN itself
    if (fresh.chap == state_.disks.at(name).chap && fresh.mutual == state_.disks.at(name).mutual)
      return;  // those it has failed with
    taken = change(name, [&](DiskRecord& disk) { disk = fresh; });
  }
  if (!taken) {
    event(rpc::Severity::error, "access-refused", name, taken.error().text);
    return;
  }
  event(rpc::Severity::info, "access-renewed", name,
        fmt::format("the peer has new secrets for {}: connecting with them", name));
  auto config = std::make_shared<SessionConfig>(session_config(fresh));
  running_.at(name).cell->with_disk([config](Disk& disk) {
    disk.set_session(std::move(*config));
    disk.connect();
  });
}

}  // namespace vjbod::initiator
