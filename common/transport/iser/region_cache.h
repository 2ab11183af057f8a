// SPDX-License-Identifier: Apache-2.0
// The slabs of a reactor's buffer pools, registered with one RDMA device: each once, when it is
// first lent, until its pool unmaps it or the last connection through the device is gone.
#pragma once

#include <memory>
#include <vector>

#include "common/runtime/slab_directory.h"
#include "common/transport/iser/verbs_api.h"

namespace vjbod::transport {

class RegionCache final : private SlabWatcher {
 public:
  // `access`: local at a target; window at an initiator, whose windows say what peers may do.
  RegionCache(SlabDirectory& slabs, std::shared_ptr<rdma::Domain> domain, rdma::Access access);
  ~RegionCache();
  RegionCache(const RegionCache&) = delete;
  RegionCache& operator=(const RegionCache&) = delete;

  rdma::Domain& domain() { return *domain_; }
  rdma::Access access() const { return access_; }
  // The region that holds `memory`; null when it lies in no slab, and whoever lends it registers it
  // for himself.
  Result<const rdma::Region*> find(ConstBytes memory);
  size_t size() const { return regions_.size(); }

 private:
  void on_slab_gone(Bytes slab) override;
  std::vector<std::unique_ptr<rdma::Region>>::iterator after(const std::byte* address);

  SlabDirectory& slabs_;
  const std::shared_ptr<rdma::Domain> domain_;
  const rdma::Access access_;
  std::vector<std::unique_ptr<rdma::Region>> regions_;  // by address
};

}  // namespace vjbod::transport
