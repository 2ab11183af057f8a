// SPDX-License-Identifier: Apache-2.0
// The host daemon put together: state, identity, shards, peers, disks, the local control server,
// and the orderly end. The composition root; everything it makes lives as long as it does. Main
// thread.
#pragma once

#include <memory>

#include "common/base/result.h"
#include "initiator/config.h"

namespace vjbod::initiator {

// Runs until SIGTERM or SIGINT. An error: it could not start, and why. Signals must be blocked
// already.
Status run_host_daemon(const HostConfig& config);

}  // namespace vjbod::initiator
