// SPDX-License-Identifier: Apache-2.0
// The codes of control-plane errors: what went wrong in terms that a script can act on. The numbers
// are those of ErrorKind in common.proto, which are the exit codes of `vjbod`.
#pragma once

#include <system_error>

namespace vjbod::rpc {

enum class Errc {
  other = 1,
  usage = 2,
  not_found = 3,
  already_exists = 4,
  busy = 5,
  permission = 6,
  daemon_not_running = 7,
  peer_unreachable = 8,
  timeout = 9,
  authentication = 10,
  bound_to_another_host = 11,
  identity_mismatch = 12,
  no_space = 13,
  iser_unavailable = 14,
  no_backend = 15,
  version = 16,
  partial = 17,
};

const std::error_category& error_category();
inline std::error_code make_error_code(Errc code) {
  return {static_cast<int>(code), error_category()};
}
const char* name_of(Errc code);  // stable token: "not-found"

}  // namespace vjbod::rpc

template <>
struct std::is_error_code_enum<vjbod::rpc::Errc> : std::true_type {};
