// SPDX-License-Identifier: Apache-2.0
// A LUN on an existing block device, opened exclusively: the kernel then refuses to mount it, to
// put it into a RAID or LVM, or to open it exclusively a second time.
#pragma once

#include "target/backstore/config.h"
#include "target/backstore/medium.h"

namespace vjbod::backstore {

class BlockBackstore final : public Backstore {
 public:
  static Result<std::shared_ptr<Backstore>> open(const BackstoreConfig& config);

  Geometry geometry() const override { return geometry_at(medium_->size_bytes); }
  BackstoreCapabilities capabilities() const override;
  // A device does not tell: its whole size.
  uint64_t allocated_bytes() const override { return medium_->size_bytes; }
  Result<std::unique_ptr<BackstoreQueue>> open_queue(Reactor& reactor) override;
  // Follows a device that was grown by other means.
  Status resize(uint64_t size_bytes) override;

 private:
  BlockBackstore(std::shared_ptr<Medium> medium, const Geometry& geometry);
  Geometry geometry_at(uint64_t size_bytes) const {
    Geometry geometry = geometry_;
    geometry.size_bytes = size_bytes;
    return geometry;
  }

  std::shared_ptr<Medium> medium_;
  const Geometry geometry_;  // but for the size
  const std::string description_;
};

}  // namespace vjbod::backstore
