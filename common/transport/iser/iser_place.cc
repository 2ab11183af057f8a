// SPDX-License-Identifier: Apache-2.0
#include "common/transport/iser/iser_place.h"

namespace vjbod::transport {

std::shared_ptr<RegionCache> IserPlace::cache(std::shared_ptr<rdma::Domain> domain,
                                              rdma::Access access) {
  std::erase_if(caches_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<RegionCache>& known = caches_[{domain.get(), access}];
  std::shared_ptr<RegionCache> cache = known.lock();
  if (cache == nullptr) {
    cache = std::make_shared<RegionCache>(reactor_.slabs(), std::move(domain), access);
    known = cache;
  }
  return cache;
}

}  // namespace vjbod::transport
