// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/disk_view.h"

#include <chrono>

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include "common/iscsi/errc.h"
#include "initiator/control/refusal.h"

namespace vjbod::initiator {

namespace {

using std::chrono::duration_cast;
using std::chrono::seconds;

uint32_t whole_seconds(Duration duration) {
  return static_cast<uint32_t>(duration_cast<seconds>(duration).count());
}

google::protobuf::Timestamp ago(WallTime now, Duration age) {
  const auto at = now - duration_cast<WallTime::duration>(age);
  return google::protobuf::util::TimeUtil::NanosecondsToTimestamp(
      duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count());
}

const char* connection_token(transport::Kind kind) {
  return kind == transport::Kind::iser ? "iser" : "iscsi";
}

// What a person can do about a login that the target refuses. Empty: nothing, or the error says it.
std::string advice_of(const DiskRecord& record, const DiskStatus& status) {
  if (!status.last_error) return "";
  const std::error_code& code = status.last_error->code;
  const bool secrets = code == iscsi::Errc::authentication;
  const bool unknown = code == iscsi::Errc::target_not_found || code == iscsi::Errc::not_allowed;
  if (!secrets && !unknown) return "";
  std::string advice;
  if (!record.peer.empty()) {
    advice = fmt::format(
        " `vjbod target lun list` on {} shows whether LUN {} is there and bound to "
        "this host; `vjbod target lun bind` binds it again",
        record.peer, record.lun_name);
  } else if (secrets) {
    advice = " Check the users and secrets of CHAP, here and at the target";
  } else {
    advice = " Check that the target has the LUN and lets this host use it";
  }
  if (status.state == DiskState::failed)
    advice += fmt::format(", then `vjbod connect {}`", record.name);
  return advice + ".";
}
constexpr char iser_available[] = "iser-available";

// One line that a person should know now.
std::string note_of(const DiskRecord& record, const DiskStatus& status) {
  switch (status.state) {
    case DiskState::connecting:
    case DiskState::reconnecting:
    case DiskState::recovering: {
      std::string note = fmt::format("attempt {}", std::max<uint32_t>(status.attempt, 1));
      if (status.next_attempt_in) {
        note += fmt::format(", next in {} s", whole_seconds(*status.next_attempt_in));
      }
      if (status.on_loss == OnLoss::fail) {
        note += ", I/O fails meanwhile";
      } else if (status.lost_for && status.io_timeout.count() > 0) {
        note += *status.lost_for < status.io_timeout
                    ? fmt::format(", I/O queued {} s of {} s", whole_seconds(*status.lost_for),
                                  whole_seconds(status.io_timeout))
                    : fmt::format(", I/O fails: the limit of {} s has passed",
                                  whole_seconds(status.io_timeout));
      } else if (status.lost_for) {
        note += fmt::format(", I/O queued {} s, without limit", whole_seconds(*status.lost_for));
      }
      if (status.last_error) note += "; " + status.last_error->text + advice_of(record, status);
      return note;
    }
    case DiskState::stale:
      return (status.last_error ? status.last_error->text + "; " : "") +
             std::string("not one write goes to it");
    case DiskState::failed:
    case DiskState::taken_over:
      return status.last_error ? status.last_error->text + advice_of(record, status) : "";
    default: return "";
  }
}

void add_fallback(const DiskViewInput& input, v1::Disk& disk) {
  const DiskStatus& status = *input.status;
  v1::Fallback& fallback = *disk.mutable_fallback();
  fallback.set_count(input.fallbacks);
  if (input.fallbacks > 0) *fallback.mutable_last_at() = ago(input.last_fallback, Duration::zero());
  if (input.record->choices.transport == "iscsi" || status.connection == transport::Kind::iser)
    return;
  const bool connected = status.state == DiskState::connected;
  fallback.set_active(connected);
  if (!connected && !status.rdma_failure) return;
  fallback.set_degraded(!input.no_iser || !input.no_iser->without_rdma);
  const FallbackReason why = fallback_reason(input.no_iser, status);
  fallback.set_reason_code(why.code);
  fallback.set_reason_text(why.text);
  if (status.rdma_tried_in) fallback.set_next_iser_s(whole_seconds(*status.rdma_tried_in));
}

std::string fallback_note(const std::string& name, const v1::Fallback& fallback) {
  if (!fallback.active()) return "";
  if (fallback.reason_code() == iser_available)
    return fmt::format("{}; see: vjbod reconnect {}", fallback.reason_text(), name);
  std::string note = "iSER failed: " + fallback.reason_text();
  if (fallback.next_iser_s() > 0)
    note += fmt::format("; not tried again for {} s", fallback.next_iser_s());
  return note;
}

void add_stats(const DiskCounters& counters, v1::DiskStats& stats) {
  const OperationCounters& reads = counters.of(BlockOperation::read);
  const OperationCounters& writes = counters.of(BlockOperation::write);
  stats.set_read_ops(reads.operations);
  stats.set_read_bytes(reads.bytes);
  stats.set_write_ops(writes.operations);
  stats.set_write_bytes(writes.bytes);
  stats.set_flush_ops(counters.of(BlockOperation::flush).operations);
  const OperationCounters& trims = counters.of(BlockOperation::trim);
  stats.set_trim_ops(trims.operations);
  stats.set_trim_bytes(trims.bytes);
  stats.set_replays(counters.replays);
  uint64_t errors = 0;
  Duration queued{}, service{};
  for (const OperationCounters& one : counters.by_operation) {
    errors += one.errors;
    queued += one.queued;
    service += one.service;
  }
  stats.set_errors(errors);
  stats.set_queue_time_us(
      static_cast<uint64_t>(duration_cast<std::chrono::microseconds>(queued).count()));
  stats.set_target_time_us(
      static_cast<uint64_t>(duration_cast<std::chrono::microseconds>(service).count()));
}

void add_record(const DiskRecord& record, v1::Disk& disk) {
  disk.set_name(record.name);
  disk.set_uuid(record.uuid);
  disk.set_transport_wanted(record.choices.transport);
  disk.set_peer_name(record.peer);
  disk.set_target_iqn(record.target_iqn);
  disk.set_lun_number(record.lun_number);
  disk.set_isid(record.isid);
  disk.set_pool(record.pool);
  disk.set_lun(record.lun_name);
  disk.set_on_loss(record.choices.on_loss);
  disk.set_io_timeout_s(record.choices.io_timeout_s);
  disk.set_header_digest(record.choices.header_digest);
  disk.set_data_digest(record.choices.data_digest);
  disk.set_upgrade(record.choices.upgrade);
  if (record.identity) {
    disk.set_naa(record.identity->naa);
    disk.set_serial(record.identity->serial);
    disk.set_size_bytes(record.identity->size_bytes);
    disk.set_block_size(record.identity->block_bytes);
  } else {
    disk.set_size_bytes(record.size_bytes);
    disk.set_block_size(record.block_size);
  }
  if (record.geometry) disk.set_physical_block_size(record.geometry->physical_block_bytes);
}

void add_status(const DiskStatus& status, WallTime now, v1::Disk& disk) {
  disk.set_state(name_of(status.state));
  *disk.mutable_state_since() = ago(now, status.state_age);
  if (status.connection) {
    disk.set_connection_type(connection_token(*status.connection));
    *disk.mutable_connected_since() = ago(now, status.state_age);
  }
  disk.set_portal(status.portal);
  disk.set_host_address(status.local_address);
  if (status.geometry_known) {
    disk.set_size_bytes(status.geometry.size_bytes);
    disk.set_block_size(status.geometry.block_bytes);
    disk.set_physical_block_size(status.geometry.physical_block_bytes);
  }
  disk.set_queued_ios(static_cast<uint32_t>(status.queued_ios));
  if (status.lost_for && status.queued_ios > 0) disk.set_queued_s(whole_seconds(*status.lost_for));
  disk.set_reconnects(static_cast<uint32_t>(status.reconnects));
  disk.set_attempt(status.attempt);
  if (status.next_attempt_in) disk.set_next_attempt_s(whole_seconds(*status.next_attempt_in));
  if (status.last_error) {
    disk.set_last_error(status.last_error->text);
    *disk.mutable_last_error_at() = ago(now, status.last_error->age);
  }
  add_stats(status.counters, *disk.mutable_stats());
  for (size_t begin = 0; begin < status.transitions.size();) {
    const size_t end = std::min(status.transitions.find('\n', begin), status.transitions.size());
    disk.add_transitions(status.transitions.substr(begin, end - begin));
    begin = end + 1;
  }
}

}  // namespace

FallbackReason fallback_reason(const std::optional<NoIser>& no_iser, const DiskStatus& status) {
  const auto reason = [](const std::error_code& code, std::string text) {
    if (text.ends_with('.')) text.pop_back();
    return FallbackReason{std::string(transport::rdma_reason_of(code)), std::move(text)};
  };
  if (no_iser) return reason(make_error_code(no_iser->code), no_iser->text);
  if (status.rdma_failure) return reason(status.rdma_failure->code, status.rdma_failure->text);
  return {iser_available, "iSER can be used now"};
}

v1::Disk disk_view(const DiskViewInput& input) {
  v1::Disk disk;
  add_record(*input.record, disk);
  disk.set_peer_address(input.peer_address);
  disk.set_host_interface(input.host_interface.empty() ? input.record->choices.host_interface
                                                       : input.host_interface);
  disk.set_remote_interface(input.remote_interface.empty() ? input.record->choices.remote_interface
                                                           : input.remote_interface);
  if (input.status == nullptr) {
    disk.set_state("disconnected");
    disk.set_note(
        "its creation was interrupted: create it again in the same way, or detach it to give up");
    return disk;
  }
  add_status(*input.status, input.now, disk);
  if (input.status->state == DiskState::failed || input.status->state == DiskState::stale)
    disk.set_failure(static_cast<v1::ErrorKind>(refusal_kind(*input.status)));
  add_fallback(input, disk);
  std::string note = note_of(*input.record, *input.status);
  if (note.empty()) note = fallback_note(input.record->name, disk.fallback());
  if (!input.export_error.empty()) note += (note.empty() ? "" : "; ") + input.export_error;
  disk.set_note(note);
  if (!input.socket_path.empty()) {
    disk.set_device(input.socket_path);
    disk.set_socket(input.socket_path);
    disk.set_backend("socket");
  }
  return disk;
}

}  // namespace vjbod::initiator
