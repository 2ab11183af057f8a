// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/status_map.h"

#include <algorithm>

#include "common/config/config_reader.h"
#include "common/config/state_file.h"
#include "common/config/values.h"

namespace vjbod::rpc {

namespace {

constexpr size_t text_bytes_max = 4096;  // of a sentence that another box sent

grpc::StatusCode grpc_code_of(Errc kind) {
  switch (kind) {
    case Errc::usage: return grpc::StatusCode::INVALID_ARGUMENT;
    case Errc::not_found: return grpc::StatusCode::NOT_FOUND;
    case Errc::already_exists: return grpc::StatusCode::ALREADY_EXISTS;
    case Errc::busy: return grpc::StatusCode::FAILED_PRECONDITION;
    case Errc::permission: return grpc::StatusCode::PERMISSION_DENIED;
    case Errc::authentication: return grpc::StatusCode::UNAUTHENTICATED;
    case Errc::timeout: return grpc::StatusCode::DEADLINE_EXCEEDED;
    case Errc::no_space: return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case Errc::bound_to_another_host:
    case Errc::identity_mismatch:
    case Errc::iser_unavailable:
    case Errc::no_backend:
    case Errc::version: return grpc::StatusCode::FAILED_PRECONDITION;
    case Errc::other:
    case Errc::daemon_not_running:
    case Errc::peer_unreachable:
    case Errc::partial: break;
  }
  return grpc::StatusCode::UNKNOWN;
}

Errc kind_of(grpc::StatusCode code, Callee callee) {
  switch (code) {
    case grpc::StatusCode::UNAVAILABLE:
    // Ended under way, by either end: what the call did is as open as with a lost connection.
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::ABORTED:
      return callee == Callee::local_daemon ? Errc::daemon_not_running : Errc::peer_unreachable;
    case grpc::StatusCode::DEADLINE_EXCEEDED: return Errc::timeout;
    case grpc::StatusCode::UNAUTHENTICATED: return Errc::authentication;
    case grpc::StatusCode::PERMISSION_DENIED: return Errc::permission;
    case grpc::StatusCode::UNIMPLEMENTED: return Errc::version;
    case grpc::StatusCode::NOT_FOUND: return Errc::not_found;
    case grpc::StatusCode::ALREADY_EXISTS: return Errc::already_exists;
    case grpc::StatusCode::INVALID_ARGUMENT: return Errc::usage;
    default: return Errc::other;
  }
}

Errc kind_of(config::StateErrc code) {
  switch (code) {
    case config::StateErrc::damaged: return Errc::other;
    case config::StateErrc::newer_version: return Errc::version;
    case config::StateErrc::locked: return Errc::busy;
    case config::StateErrc::not_usable: return Errc::permission;
  }
  return Errc::other;
}

// gRPC wraps the system's reason into sentences of its own, for programmers.
const char* reason_in(const std::string& text) {
  struct Known {
    const char* part;
    const char* reason;
  };
  constexpr Known known[] = {
      {"Connection refused", "nobody listens there; is vjbod-targetd running, and the port right?"},
      {"No route to host", "there is no route to it, or it is off"},
      {"Network is unreachable", "its network cannot be reached from here"},
      {"imed out", "it does not answer; is it on, and does a firewall stand between?"},
      {"DNS resolution", "its name is not known"},
      {"Name or service not known", "its name is not known"},
      {"andshake", "it does not speak TLS as a VJBOD box does, or does not take our certificate"},
      {"WRONG_VERSION_NUMBER", "what listens there does not speak TLS; is the port right?"},
      {"Connection reset", "it ended the connection"},
      {"Socket closed", "it ended the connection"},
  };
  for (const Known& entry : known)
    if (text.find(entry.part) != std::string::npos) return entry.reason;
  return "the connection failed";
}

}  // namespace

Errc kind_of(const std::error_code& code) {
  if (code.category() == error_category()) return static_cast<Errc>(code.value());
  if (code.category() == config::config_error_category()) return Errc::usage;
  if (code.category() == config::state_error_category())
    return kind_of(static_cast<config::StateErrc>(code.value()));
  struct Known {
    std::errc condition;
    Errc kind;
  };
  constexpr Known known[] = {
      {std::errc::no_space_on_device, Errc::no_space},
      {std::errc::permission_denied, Errc::permission},
      {std::errc::operation_not_permitted, Errc::permission},
      {std::errc::read_only_file_system, Errc::permission},
      {std::errc::no_such_file_or_directory, Errc::not_found},
      {std::errc::no_such_device, Errc::not_found},
      {std::errc::file_exists, Errc::already_exists},
      {std::errc::device_or_resource_busy, Errc::busy},
      {std::errc::address_in_use, Errc::busy},
      {std::errc::timed_out, Errc::timeout},
      {std::errc::connection_refused, Errc::peer_unreachable},
      {std::errc::host_unreachable, Errc::peer_unreachable},
      {std::errc::network_unreachable, Errc::peer_unreachable},
      {std::errc::invalid_argument, Errc::usage},
  };
  for (const Known& entry : known)
    if (code == entry.condition) return entry.kind;
  return code == std::error_code(EDQUOT, std::generic_category()) ||
                 code == std::error_code(EDQUOT, std::system_category())
             ? Errc::no_space
             : Errc::other;
}

v1::ErrorDetail to_detail(const Error& error) {
  Errc kind = kind_of(error.code);
  v1::ErrorDetail detail;
  detail.set_kind(static_cast<v1::ErrorKind>(kind));
  detail.set_reason_code(name_of(kind));
  detail.set_text(error.text);
  return detail;
}

grpc::Status to_grpc_status(const Error& error) {
  return grpc::Status(grpc_code_of(kind_of(error.code)), error.text,
                      to_detail(error).SerializeAsString());
}

Error from_grpc_status(const grpc::Status& status, Callee callee, std::string_view what) {
  v1::ErrorDetail detail;
  if (!status.error_details().empty() && detail.ParseFromString(status.error_details()) &&
      detail.kind() >= v1::ERROR_KIND_OTHER && detail.kind() <= v1::ERROR_KIND_PARTIAL)
    return Error{static_cast<Errc>(detail.kind()),
                 config::printable(detail.text(), text_bytes_max)};

  Errc kind = kind_of(status.error_code(), callee);
  std::string reason = config::printable(status.error_message(), text_bytes_max);
  // The verifier's verdict arrives as a failed connection.
  if (kind == Errc::peer_unreachable && reason.find("this is another box") != std::string::npos)
    return Error{Errc::identity_mismatch,
                 fmt::format("{} is not the box that was paired: {}", what, reason)};
  switch (kind) {
    case Errc::daemon_not_running:
      return Error{kind, fmt::format("{} cannot be reached; is it running?", what)};
    case Errc::peer_unreachable:
      return Error{kind, fmt::format("{} cannot be reached: {}", what, reason_in(reason))};
    case Errc::timeout: return Error{kind, fmt::format("{} did not answer in time", what)};
    case Errc::version:
      return Error{kind, fmt::format("{} does not know this call; it is of another version", what)};
    default: return Error{kind, fmt::format("{}: {}", what, reason)};
  }
}

}  // namespace vjbod::rpc
