// SPDX-License-Identifier: Apache-2.0
// Where iSER connections live: one reactor, its RDMA fabric, and the memory registered for all of
// them. Outlives them.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "common/runtime/reactor.h"
#include "common/transport/iser/region_cache.h"
#include "common/transport/iser/verbs_api.h"

namespace vjbod::transport {

class IserPlace {
 public:
  IserPlace(Reactor& reactor, rdma::Fabric& fabric) : reactor_(reactor), fabric_(fabric) {}

  Reactor& reactor() { return reactor_; }
  rdma::Fabric& fabric() { return fabric_; }
  // Shared by the connections through one device; gone with the last of them.
  std::shared_ptr<RegionCache> cache(std::shared_ptr<rdma::Domain> domain, rdma::Access access);

 private:
  Reactor& reactor_;
  rdma::Fabric& fabric_;
  std::map<std::pair<const rdma::Domain*, rdma::Access>, std::weak_ptr<RegionCache>> caches_;
};

}  // namespace vjbod::transport
