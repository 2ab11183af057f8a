// SPDX-License-Identifier: Apache-2.0
#include "target/control/wire.h"

#include <algorithm>

#include "common/config/values.h"
#include "common/rpc/timestamp.h"
#include "common/runtime/wall_clock.h"

namespace vjbod::target {

SessionCounts count_sessions(const std::vector<SessionInfo>& sessions) {
  SessionCounts counts;
  for (const SessionInfo& session : sessions)
    if (!session.discovery) ++counts[session.target_name];
  return counts;
}

void fill(const LunStatus& lun, const SessionCounts& sessions, v1::Lun& message) {
  const LunRecord& record = *lun.record;
  message.set_name(record.name);
  message.set_pool(record.pool);
  message.set_size_bytes(record.size_bytes);
  message.set_allocated_bytes(lun.allocated_bytes);
  message.set_block_size(record.block_size);
  message.set_naa(fmt::format("{:016x}", lun.naa));
  message.set_serial(lun.serial);
  message.set_target_iqn(record.target_iqn);
  message.set_lun_number(0);
  if (record.binding) message.set_bound_to(record.binding->host);
  message.set_thin(!record.thick);
  message.set_uuid(uuid_text(record.uuid));
  for (const std::string& iqn : record.allowed_initiators) message.add_allowed_initiators(iqn);
  if (auto count = sessions.find(record.target_iqn); count != sessions.end())
    message.set_sessions(count->second);
  message.set_state(lun.error.empty() ? "ok" : "failed");
  message.set_error(lun.error);
}

void fill(const PoolStatus& pool, const TargetState& state, bool with_path, v1::Pool& message) {
  message.set_name(pool.config.name);
  message.set_kind(name_of(pool.config.kind));
  if (with_path) message.set_path(pool.config.path);
  message.set_size_bytes(pool.space.total_bytes);
  message.set_free_bytes(pool.space.free_bytes);
  message.set_lun_count(static_cast<uint32_t>(
      std::count_if(state.luns.begin(), state.luns.end(),
                    [&](const auto& entry) { return entry.second.pool == pool.config.name; })));
  message.set_error(pool.error);
}

void fill(const ReachablePortal& portal, v1::Portal& message) {
  message.set_address(portal.address);
  message.set_port(portal.port);
  if (portal.iscsi) message.add_transports("iscsi");
  if (portal.iser) message.add_transports("iser");
}

void fill(const net::Interface& interface, v1::Interface& message) {
  message.set_name(interface.name);
  for (const net::InterfaceAddress& address : interface.addresses) {
    v1::InterfaceAddress& entry = *message.add_addresses();
    entry.set_address(address.address);
    entry.set_prefix_length(address.prefix_length);
    entry.set_rdma_type(address.rdma_type);
  }
  message.set_mtu(interface.mtu);
  message.set_speed_mbps(interface.speed_mbps);
  message.set_up(interface.up);
  if (interface.rdma) {
    message.set_rdma_device(interface.rdma->device);
    message.set_rdma_port(interface.rdma->port);
    message.set_rdma_link_layer(interface.rdma->link_layer);
    message.set_rdma_link_up(interface.rdma->link_up);
    message.set_rdma_link_state(interface.rdma->link_state);
    message.set_rdma_regions_max(interface.rdma->regions_max);
    message.set_rdma_region_bytes_max(interface.rdma->region_bytes_max);
    message.set_rdma_memory_windows(interface.rdma->memory_windows);
  }
}

void fill(const ForeignInitiator& initiator, const TargetState& state, v1::Initiator& message) {
  message.set_iqn(initiator.iqn);
  message.set_chap(initiator.chap.has_value());
  message.set_mutual_chap(initiator.mutual.has_value());
  if (initiator.chap) message.set_chap_user(initiator.chap->user);
  for (const auto& [name, lun] : state.luns)
    if (lun.allowed_initiators.contains(initiator.iqn)) message.add_luns(name);
}

void fill(const PairedHost& host, const TargetState& state, bool watching,
          v1::TargetPeerInfo& message) {
  message.set_name(host.name);
  message.set_certificate_fingerprint(host.fingerprint.to_text());
  message.set_initiator_iqn(host.initiator_iqn);
  *message.mutable_paired_at() = rpc::to_timestamp(host.paired_at);
  message.set_watching(watching);
  for (const auto& [name, lun] : state.luns)
    if (lun.binding && lun.binding->host == host.name) message.add_luns(name);
}

void fill(const SessionInfo& session, const TargetState& state, TimePoint now,
          v1::TargetSession& message) {
  message.set_id(std::to_string(session.id));
  message.set_initiator_iqn(session.initiator_name);
  message.set_target_iqn(session.target_name);
  for (const auto& [name, host] : state.hosts)
    if (host.initiator_iqn == session.initiator_name) message.set_peer_name(name);
  message.set_transport(transport::name_of(session.transport));
  message.set_remote_address(session.remote_address);
  message.set_local_address(session.local_address);
  std::string isid;
  for (auto byte : session.isid) isid += fmt::format("{:02x}", static_cast<unsigned>(byte));
  message.set_isid(isid);
  message.set_tsih(session.tsih);
  *message.mutable_since() =
      rpc::to_timestamp(wall_now() - std::chrono::duration_cast<WallTime::duration>(
                                         std::max(now - session.since, Duration(0))));
  message.set_header_digest(session.header_digest);
  message.set_data_digest(session.data_digest);
  message.set_authentication(session.authenticated_user.empty() ? "none"
                             : session.mutual_authentication    ? "mutual-chap"
                                                                : "chap");
  message.set_read_bytes(session.counters.read_bytes);
  message.set_write_bytes(session.counters.write_bytes);
  message.set_read_ops(session.counters.read_ops);
  message.set_write_ops(session.counters.write_ops);
  message.set_tasks_active(session.tasks_active);
}

}  // namespace vjbod::target
