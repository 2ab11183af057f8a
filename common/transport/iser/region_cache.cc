// SPDX-License-Identifier: Apache-2.0
#include "common/transport/iser/region_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace vjbod::transport {

namespace {

bool holds(ConstBytes outer, ConstBytes inner) {
  const size_t offset = static_cast<size_t>(inner.data() - outer.data());
  return offset <= outer.size() && inner.size() <= outer.size() - offset;
}

}  // namespace

RegionCache::RegionCache(SlabDirectory& slabs, std::shared_ptr<rdma::Domain> domain,
                         rdma::Access access)
    : slabs_(slabs), domain_(std::move(domain)), access_(access) {
  slabs_.watch(*this);
}

RegionCache::~RegionCache() {
  slabs_.unwatch(*this);
}

std::vector<std::unique_ptr<rdma::Region>>::iterator RegionCache::after(const std::byte* address) {
  return std::upper_bound(regions_.begin(), regions_.end(), address,
                          [](const std::byte* wanted, const std::unique_ptr<rdma::Region>& region) {
                            return wanted < region->memory().data();
                          });
}

Result<const rdma::Region*> RegionCache::find(ConstBytes memory) {
  const auto next = after(memory.data());
  if (next != regions_.begin()) {
    const rdma::Region& region = **std::prev(next);
    if (holds(region.memory(), memory)) return &region;
  }
  const Bytes slab = slabs_.slab_of(memory);
  if (slab.empty()) return nullptr;
  auto region = domain_->register_memory(slab, access_);
  if (!region) return fail(std::move(region).error());
  return regions_.insert(next, std::move(*region))->get();
}

void RegionCache::on_slab_gone(Bytes slab) {
  const auto next = after(slab.data());
  if (next == regions_.begin()) return;
  const auto found = std::prev(next);
  if ((*found)->memory().data() == slab.data()) regions_.erase(found);
}

}  // namespace vjbod::transport
