// SPDX-License-Identifier: Apache-2.0
// gRPC's own log lines go where ours go, at debug level: what matters of them reaches people
// through the status of calls.
#pragma once

namespace vjbod::rpc {

// Once, from main, before the first channel or server.
void forward_grpc_log();

}  // namespace vjbod::rpc
