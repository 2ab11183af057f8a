// SPDX-License-Identifier: Apache-2.0
#include "tools/vjbod/disk_views.h"

#include <chrono>

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include "common/config/values.h"
#include "tools/vjbod/table.h"

namespace vjbod::cli {

namespace {

constexpr size_t line_bytes_max = 4096;  // some of it comes from other boxes

std::string connection_text(const std::string& type) {
  if (type == "iser") return "iSER";
  if (type == "iscsi") return "iSCSI";
  return "-";
}

std::string uptime(const v1::Disk& disk) {
  if (!disk.has_connected_since()) return "";
  const int64_t now = std::chrono::duration_cast<std::chrono::seconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  return short_duration(
      static_cast<uint64_t>(std::max<int64_t>(0, now - disk.connected_since().seconds())));
}

std::string peer_text(const v1::Disk& disk) {
  if (disk.peer_name().empty()) return disk.portal();
  return disk.peer_address().empty() ? disk.peer_name()
                                     : disk.peer_name() + " " + disk.peer_address();
}

}  // namespace

std::vector<std::string> disk_columns() {
  return {"NAME", "DEVICE", "SIZE", "STATE", "CONNECTION", "PEER", "UPTIME", "NOTE"};
}

std::vector<std::string> disk_row(const v1::Disk& disk) {
  return {disk.name(),
          disk.device(),
          disk.size_bytes() == 0 ? "" : short_size(disk.size_bytes()),
          disk.state(),
          connection_text(disk.connection_type()),
          peer_text(disk),
          uptime(disk),
          disk.note()};
}

std::string disk_details(const v1::Disk& disk) {
  std::string out = disk.name() + "\n";
  auto line = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    out += fmt::format("  {:<18} {}\n", std::string(key) + ":",
                       config::printable(value, line_bytes_max));
  };
  line("state", disk.state());
  if (disk.has_state_since())
    line("since", google::protobuf::util::TimeUtil::ToString(disk.state_since()));
  line("note", disk.note());
  line("device", disk.device());
  line("backend", disk.backend_reason().empty()
                      ? disk.backend()
                      : disk.backend() + " (" + disk.backend_reason() + ")");
  line("socket", disk.socket());
  line("size",
       fmt::format("{} ({} bytes, blocks of {}, physical {})", short_size(disk.size_bytes()),
                   disk.size_bytes(), disk.block_size(), disk.physical_block_size()));
  line("connection", fmt::format("{} (wanted: {})", connection_text(disk.connection_type()),
                                 disk.transport_wanted()));
  if (disk.fallback().active())
    line("no iSER", disk.fallback().reason_code() + ": " + disk.fallback().reason_text());
  if (disk.fallback().count() > 0)
    line("fallbacks", fmt::format("{} since the daemon started; back to iSER: {}",
                                  disk.fallback().count(), disk.upgrade()));
  line("peer", peer_text(disk));
  line("portal", disk.portal());
  line("host interface", disk.host_interface().empty()
                             ? disk.host_address()
                             : disk.host_interface() + " " + disk.host_address());
  line("remote interface", disk.remote_interface());
  line("target", disk.target_iqn());
  line("LUN", disk.lun().empty() ? std::to_string(disk.lun_number())
                                 : fmt::format("{} (number {})", disk.lun(), disk.lun_number()));
  line("pool", disk.pool());
  line("NAA", disk.naa());
  line("serial", disk.serial());
  line("uuid", disk.uuid());
  line("ISID", disk.isid());
  line("digests", fmt::format("header {}, data {}", disk.header_digest() ? "CRC32C" : "none",
                              disk.data_digest() ? "CRC32C" : "none"));
  line("on loss", disk.on_loss() == "queue" && disk.io_timeout_s() > 0
                      ? fmt::format("queue for {} s, then fail", disk.io_timeout_s())
                      : disk.on_loss());
  line("waiting", disk.queued_ios() == 0 ? ""
                                         : fmt::format("{} I/Os, the oldest for {} s",
                                                       disk.queued_ios(), disk.queued_s()));
  line("reconnects", std::to_string(disk.reconnects()));
  if (!disk.last_error().empty()) {
    line("last error", disk.has_last_error_at()
                           ? disk.last_error() + " (" +
                                 google::protobuf::util::TimeUtil::ToString(disk.last_error_at()) +
                                 ")"
                           : disk.last_error());
  }
  const v1::DiskStats& stats = disk.stats();
  line("read", fmt::format("{} ops, {}", stats.read_ops(), short_size(stats.read_bytes())));
  line("written", fmt::format("{} ops, {}", stats.write_ops(), short_size(stats.write_bytes())));
  line("flushes", std::to_string(stats.flush_ops()));
  line("trimmed", fmt::format("{} ops, {}", stats.trim_ops(), short_size(stats.trim_bytes())));
  line("errors, replays", fmt::format("{}, {}", stats.errors(), stats.replays()));
  const uint64_t ops = stats.read_ops() + stats.write_ops() + stats.flush_ops() + stats.trim_ops();
  if (ops > 0) {
    line("mean time", fmt::format("{} us waiting here, {} us network and target",
                                  stats.queue_time_us() / ops, stats.target_time_us() / ops));
  }
  if (disk.transitions_size() > 0) out += "  last state changes:\n";
  for (const std::string& transition : disk.transitions())
    out += "    " + config::printable(transition, line_bytes_max) + "\n";
  return out;
}

std::vector<std::string> event_row(const v1::Event& event) {
  return {google::protobuf::util::TimeUtil::ToString(event.at()), event.severity(), event.kind(),
          event.object(), event.text()};
}

std::vector<std::string> disk_states() {
  return {"connecting", "connected", "reconnecting", "disconnected", "detaching",
          "failed",     "stale",     "taken-over",   "recovering"};
}

int disk_health(const v1::Disk& disk) {
  if (disk.state() != "connected") return 2;
  return disk.fallback().active() && disk.fallback().degraded() ? 1 : 0;
}

}  // namespace vjbod::cli
