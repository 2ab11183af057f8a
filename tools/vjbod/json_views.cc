// SPDX-License-Identifier: Apache-2.0
#include "tools/vjbod/json_views.h"

#include <google/protobuf/util/time_util.h>

namespace vjbod::cli {

namespace {

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json number_or_null(uint64_t number) {
  return number == 0 ? Json(nullptr) : Json(number);
}

Json time_or_null(bool known, const google::protobuf::Timestamp& time) {
  return known ? Json(google::protobuf::util::TimeUtil::ToString(time)) : Json(nullptr);
}

template <typename Texts>
Json texts(const Texts& values) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(value);
  return list;
}

Json version_json(const v1::VersionInfo& version) {
  return {{"version", text_or_null(version.version())},
          {"protocol_major", version.protocol_major()},
          {"protocol_minor", version.protocol_minor()},
          {"features", texts(version.features())}};
}

}  // namespace

Json to_json(const google::protobuf::Timestamp& time) {
  return time_or_null(true, time);
}

Json to_json(const v1::Disk& disk) {
  const v1::Fallback& fallback = disk.fallback();
  const v1::DiskStats& stats = disk.stats();
  return {
      {"name", disk.name()},
      {"uuid", text_or_null(disk.uuid())},
      {"device", text_or_null(disk.device())},
      {"backend", text_or_null(disk.backend())},
      {"backend_reason", text_or_null(disk.backend_reason())},
      {"socket", text_or_null(disk.socket())},
      {"naa", text_or_null(disk.naa())},
      {"serial", text_or_null(disk.serial())},
      {"size_bytes", number_or_null(disk.size_bytes())},
      {"block_size", number_or_null(disk.block_size())},
      {"physical_block_size", number_or_null(disk.physical_block_size())},
      {"state", disk.state()},
      {"state_since", time_or_null(disk.has_state_since(), disk.state_since())},
      {"connected_since", time_or_null(disk.has_connected_since(), disk.connected_since())},
      {"connection_type", text_or_null(disk.connection_type())},
      {"transport_wanted", disk.transport_wanted()},
      {"fallback",
       {{"active", fallback.active()},
        {"reason_code", text_or_null(fallback.reason_code())},
        {"reason_text", text_or_null(fallback.reason_text())},
        {"count", fallback.count()},
        {"last_at", time_or_null(fallback.has_last_at(), fallback.last_at())},
        {"degraded", fallback.degraded()},
        {"next_iser_s", fallback.next_iser_s()}}},
      {"upgrade", text_or_null(disk.upgrade())},
      {"peer",
       {{"name", text_or_null(disk.peer_name())}, {"address", text_or_null(disk.peer_address())}}},
      {"pool", text_or_null(disk.pool())},
      {"lun", text_or_null(disk.lun())},
      {"target_iqn", text_or_null(disk.target_iqn())},
      {"lun_number", disk.lun_number()},
      {"isid", text_or_null(disk.isid())},
      {"portal", text_or_null(disk.portal())},
      {"host_interface", text_or_null(disk.host_interface())},
      {"host_address", text_or_null(disk.host_address())},
      {"remote_interface", text_or_null(disk.remote_interface())},
      {"header_digest", disk.header_digest()},
      {"data_digest", disk.data_digest()},
      {"on_loss", disk.on_loss()},
      {"io_timeout_s", disk.io_timeout_s()},
      {"queued_ios", disk.queued_ios()},
      {"queued_s", disk.queued_s()},
      {"attempt", disk.attempt()},
      {"next_attempt_s", disk.next_attempt_s()},
      {"reconnects", disk.reconnects()},
      {"last_error", text_or_null(disk.last_error())},
      {"last_error_at", time_or_null(disk.has_last_error_at(), disk.last_error_at())},
      {"note", text_or_null(disk.note())},
      {"stats",
       {{"read_ops", stats.read_ops()},
        {"write_ops", stats.write_ops()},
        {"read_bytes", stats.read_bytes()},
        {"write_bytes", stats.write_bytes()},
        {"flush_ops", stats.flush_ops()},
        {"trim_ops", stats.trim_ops()},
        {"trim_bytes", stats.trim_bytes()},
        {"errors", stats.errors()},
        {"replays", stats.replays()},
        {"queue_time_us", stats.queue_time_us()},
        {"target_time_us", stats.target_time_us()}}},
  };
}

Json to_json(const v1::Lun& lun) {
  return {{"name", lun.name()},
          {"pool", lun.pool()},
          {"size_bytes", lun.size_bytes()},
          {"allocated_bytes", lun.allocated_bytes()},
          {"block_size", lun.block_size()},
          {"naa", text_or_null(lun.naa())},
          {"serial", text_or_null(lun.serial())},
          {"uuid", text_or_null(lun.uuid())},
          {"target_iqn", text_or_null(lun.target_iqn())},
          {"lun_number", lun.lun_number()},
          {"bound_to", text_or_null(lun.bound_to())},
          {"allowed_initiators", texts(lun.allowed_initiators())},
          {"sessions", lun.sessions()},
          {"thin", lun.thin()},
          {"state", text_or_null(lun.state())},
          {"error", text_or_null(lun.error())}};
}

Json to_json(const v1::Pool& pool) {
  return {{"name", pool.name()},
          {"kind", pool.kind()},
          {"path", text_or_null(pool.path())},
          {"size_bytes", pool.size_bytes()},
          {"free_bytes", pool.free_bytes()},
          {"lun_count", pool.lun_count()},
          {"error", text_or_null(pool.error())}};
}

Json to_json(const v1::Interface& interface) {
  Json addresses = Json::array();
  for (const auto& address : interface.addresses()) {
    addresses.push_back({{"address", address.address()},
                         {"prefix_length", address.prefix_length()},
                         {"rdma_type", text_or_null(address.rdma_type())}});
  }
  Json rdma = nullptr;
  if (!interface.rdma_device().empty())
    rdma = {{"device", interface.rdma_device()},
            {"port", interface.rdma_port()},
            {"link_layer", text_or_null(interface.rdma_link_layer())},
            {"link_up", interface.rdma_link_up()},
            {"link_state", text_or_null(interface.rdma_link_state())},
            {"regions_max", number_or_null(interface.rdma_regions_max())},
            {"region_bytes_max", number_or_null(interface.rdma_region_bytes_max())},
            {"memory_windows", interface.rdma_memory_windows()}};
  return {{"name", interface.name()},
          {"addresses", std::move(addresses)},
          {"mtu", number_or_null(interface.mtu())},
          {"speed_mbps", number_or_null(interface.speed_mbps())},
          {"up", interface.up()},
          {"rdma_device", text_or_null(interface.rdma_device())},
          {"rdma", std::move(rdma)},
          {"control_only", interface.control_only()}};
}

Json to_json(const v1::InterfacePair& pair) {
  return {{"rank", pair.rank()},
          {"host", to_json(pair.host())},
          {"remote", to_json(pair.remote())},
          {"host_address", text_or_null(pair.host_address())},
          {"remote_address", text_or_null(pair.remote_address())},
          {"usable", pair.usable()},
          {"iser", pair.iser()},
          {"iser_reason_code", text_or_null(pair.iser_reason_code())},
          {"iser_reason_text", text_or_null(pair.iser_reason_text())},
          {"explanation", pair.explanation()}};
}

Json to_json(const v1::PreflightCheck& check) {
  return {{"name", check.name()}, {"result", check.result()}, {"text", check.text()}};
}

Json to_json(const v1::Portal& portal) {
  return {{"address", portal.address()},
          {"port", portal.port()},
          {"transports", texts(portal.transports())}};
}

Json to_json(const v1::Event& event) {
  return {{"sequence", event.sequence()},
          {"at", time_or_null(event.has_at(), event.at())},
          {"kind", event.kind()},
          {"severity", event.severity()},
          {"object", text_or_null(event.object())},
          {"text", event.text()}};
}

Json to_json(const v1::TargetSession& session) {
  return {{"id", session.id()},
          {"initiator_iqn", session.initiator_iqn()},
          {"target_iqn", text_or_null(session.target_iqn())},
          {"peer_name", text_or_null(session.peer_name())},
          {"transport", session.transport()},
          {"remote_address", session.remote_address()},
          {"local_address", session.local_address()},
          {"isid", session.isid()},
          {"tsih", session.tsih()},
          {"since", time_or_null(session.has_since(), session.since())},
          {"header_digest", session.header_digest()},
          {"data_digest", session.data_digest()},
          {"authentication", session.authentication()},
          {"read_ops", session.read_ops()},
          {"write_ops", session.write_ops()},
          {"read_bytes", session.read_bytes()},
          {"write_bytes", session.write_bytes()},
          {"tasks_active", session.tasks_active()}};
}

Json to_json(const v1::Initiator& initiator) {
  return {{"iqn", initiator.iqn()},
          {"chap", initiator.chap()},
          {"mutual_chap", initiator.mutual_chap()},
          {"chap_user", text_or_null(initiator.chap_user())},
          {"luns", texts(initiator.luns())}};
}

Json to_json(const v1::TargetPeerInfo& peer) {
  return {{"name", peer.name()},
          {"certificate_fingerprint", peer.certificate_fingerprint()},
          {"initiator_iqn", peer.initiator_iqn()},
          {"paired_at", time_or_null(peer.has_paired_at(), peer.paired_at())},
          {"watching", peer.watching()},
          {"luns", texts(peer.luns())}};
}

Json to_json(const v1::HostPeer& peer) {
  Json pending = Json::array();
  for (const v1::PendingFarewell& one : peer.pending())
    pending.push_back({{"lun", one.lun()},
                       {"action", one.action()},
                       {"since", time_or_null(one.has_since(), one.since())},
                       {"last_error", text_or_null(one.last_error())}});
  return {{"name", peer.name()},
          {"address", peer.address()},
          {"port", peer.port()},
          {"certificate_fingerprint", peer.certificate_fingerprint()},
          {"paired_at", time_or_null(peer.has_paired_at(), peer.paired_at())},
          {"reachable", peer.reachable()},
          {"last_error", text_or_null(peer.last_error())},
          {"disks", peer.disks()},
          {"version", version_json(peer.version())},
          {"pending", std::move(pending)}};
}

Json to_json(const v1::TargetStatus& status) {
  Json portals = Json::array();
  for (const auto& portal : status.portals()) portals.push_back(to_json(portal));
  return {{"schema", 1},
          {"name", status.name()},
          {"version", version_json(status.version())},
          {"certificate_fingerprint", status.certificate_fingerprint()},
          {"started_at", time_or_null(status.has_started_at(), status.started_at())},
          {"control_address", text_or_null(status.control_address())},
          {"portals", std::move(portals)},
          {"luns", status.luns()},
          {"sessions", status.sessions()},
          {"peers", status.peers()}};
}

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace vjbod::cli
