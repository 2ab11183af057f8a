// SPDX-License-Identifier: Apache-2.0
// The outcome of a login as it travels in a Login Response: status class in the high byte, status
// detail in the low one (RFC 7143 section 11.13.5). A peer may send values that are not named here.
#pragma once

#include <cstdint>
#include <string>

namespace vjbod::iscsi {

enum class LoginStatus : uint16_t {
  success = 0x0000,
  target_moved_temporarily = 0x0101,
  target_moved_permanently = 0x0102,
  initiator_error = 0x0200,
  authentication_failure = 0x0201,
  authorization_failure = 0x0202,
  not_found = 0x0203,
  target_removed = 0x0204,
  unsupported_version = 0x0205,
  too_many_connections = 0x0206,
  missing_parameter = 0x0207,
  cannot_include_in_session = 0x0208,
  session_type_not_supported = 0x0209,
  session_does_not_exist = 0x020a,
  invalid_during_login = 0x020b,
  target_error = 0x0300,
  service_unavailable = 0x0301,
  out_of_resources = 0x0302,
};

constexpr LoginStatus login_status(uint8_t status_class, uint8_t status_detail) {
  return static_cast<LoginStatus>(status_class << 8 | status_detail);
}
constexpr uint8_t status_class(LoginStatus status) {
  return static_cast<uint8_t>(static_cast<uint16_t>(status) >> 8);
}
constexpr uint8_t status_detail(LoginStatus status) {
  return static_cast<uint8_t>(static_cast<uint16_t>(status) & 0xff);
}

// "authentication failure"; for a value without a name what its class says.
const char* name_of(LoginStatus status);
// "login status 0x0201, authentication failure"
std::string describe(LoginStatus status);

// What an initiator can do about it.
enum class LoginVerdict : uint8_t {
  success,
  redirect,   // go to the TargetAddress of the response
  permanent,  // trying again without a change of configuration is pointless
  retry,      // may go better later
};
LoginVerdict verdict_of(LoginStatus status);

}  // namespace vjbod::iscsi
