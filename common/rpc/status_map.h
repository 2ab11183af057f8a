// SPDX-License-Identifier: Apache-2.0
// Errors across a call: Error becomes a grpc::Status that carries a v1::ErrorDetail, and back.
#pragma once

#include <string_view>

#include <grpcpp/support/status.h>

#include "common/base/result.h"
#include "common/rpc/errc.h"
#include "vjbod/v1/common.pb.h"

namespace vjbod::rpc {

// What an error means to a script. Codes of rpc::Errc mean themselves, errno values and everything
// that is equivalent to one (no space, permission, exists, busy, …) are mapped, the rest is other.
Errc kind_of(const std::error_code& code);
// Of a daemon that could not start; the numbers are those of `vjbod`.
inline int exit_status(const Error& error) {
  return static_cast<int>(kind_of(error.code));
}

grpc::Status to_grpc_status(const Error& error);
v1::ErrorDetail to_detail(const Error& error);

// Whom a call went to decides what "unavailable" means.
enum class Callee { local_daemon, peer };
// `what` names the call's aim for the sentence where the other side gave none: "the target daemon
// at /run/vjbod/target.sock", "nas2 at 10.0.0.2:7443". The code of the result is an rpc::Errc.
// Not for an OK status.
Error from_grpc_status(const grpc::Status& status, Callee callee, std::string_view what);

}  // namespace vjbod::rpc
