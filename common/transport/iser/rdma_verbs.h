// SPDX-License-Identifier: Apache-2.0
// verbs_api.h over rdma-core: librdmacm connects, libibverbs moves data.
#pragma once

#include <memory>

#include "common/runtime/reactor.h"
#include "common/transport/iser/open_devices.h"
#include "common/transport/iser/verbs_api.h"

namespace vjbod::transport::rdma {

// Connections of `reactor`. What may wait in the kernel (taking down the connection manager's end
// of a connection) happens on `disposal`, which has nothing urgent to do; both outlive the fabric.
// A machine without RDMA shows in the answers of its calls, not here. `devices`: one for all
// fabrics of the process.
std::unique_ptr<Fabric> make_verbs_fabric(Reactor& reactor, Reactor& disposal,
                                          std::shared_ptr<OpenDevices> devices);

}  // namespace vjbod::transport::rdma
