// SPDX-License-Identifier: Apache-2.0
// A LUN in a regular file, sparse or thick. The file is locked (flock) for as long as the backstore
// lives, so that no other LUN and no other daemon serves it too.
#pragma once

#include "target/backstore/config.h"
#include "target/backstore/medium.h"

namespace vjbod::backstore {

class FileBackstore final : public Backstore {
 public:
  // The file must exist (directory_pool.h makes it).
  static Result<std::shared_ptr<Backstore>> open(const BackstoreConfig& config);

  Geometry geometry() const override;
  BackstoreCapabilities capabilities() const override;
  uint64_t allocated_bytes() const override;
  Result<std::unique_ptr<BackstoreQueue>> open_queue(Reactor& reactor) override;
  // Grows the file if need be; on stable storage when it returns.
  Status resize(uint64_t size_bytes) override;

 private:
  FileBackstore(std::shared_ptr<Medium> medium, uint32_t block_bytes);

  std::shared_ptr<Medium> medium_;
  const uint32_t block_bytes_;
  const std::string description_;
};

}  // namespace vjbod::backstore
