// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/login_status.h"

#include <fmt/format.h>

namespace vjbod::iscsi {

namespace {

const char* name_of_class(LoginStatus status) {
  switch (status_class(status)) {
    case 0: return "success";
    case 1: return "target moved";
    case 2: return "initiator error";
    case 3: return "target error";
    default: return "unknown status";
  }
}

}  // namespace

const char* name_of(LoginStatus status) {
  switch (status) {
    case LoginStatus::success: return "success";
    case LoginStatus::target_moved_temporarily: return "target moved temporarily";
    case LoginStatus::target_moved_permanently: return "target moved permanently";
    case LoginStatus::initiator_error: return "initiator error";
    case LoginStatus::authentication_failure: return "authentication failure";
    case LoginStatus::authorization_failure:
      return "authorization failure: this initiator may not use this target";
    case LoginStatus::not_found: return "target not found, or not for this initiator";
    case LoginStatus::target_removed: return "target removed";
    case LoginStatus::unsupported_version: return "unsupported iSCSI version";
    case LoginStatus::too_many_connections: return "too many connections";
    case LoginStatus::missing_parameter: return "missing parameter";
    case LoginStatus::cannot_include_in_session:
      return "connection cannot be included in the session";
    case LoginStatus::session_type_not_supported: return "session type not supported";
    case LoginStatus::session_does_not_exist: return "session does not exist";
    case LoginStatus::invalid_during_login: return "request not valid during login";
    case LoginStatus::target_error: return "target error";
    case LoginStatus::service_unavailable: return "service unavailable";
    case LoginStatus::out_of_resources: return "target out of resources";
  }
  return name_of_class(status);
}

std::string describe(LoginStatus status) {
  return fmt::format("login status {:#06x}, {}", static_cast<uint16_t>(status), name_of(status));
}

LoginVerdict verdict_of(LoginStatus status) {
  switch (status) {
    case LoginStatus::target_moved_temporarily:
    case LoginStatus::target_moved_permanently: return LoginVerdict::redirect;
    case LoginStatus::authentication_failure:
    case LoginStatus::authorization_failure:
    case LoginStatus::not_found:
    case LoginStatus::target_removed:
    case LoginStatus::unsupported_version:
    case LoginStatus::missing_parameter:
    case LoginStatus::session_type_not_supported: return LoginVerdict::permanent;
    default: break;
  }
  // The rest of class 2 is about connections and sessions that come and go, or says nothing; an
  // unknown detail means what its class means.
  return status_class(status) == 0 ? LoginVerdict::success : LoginVerdict::retry;
}

}  // namespace vjbod::iscsi
