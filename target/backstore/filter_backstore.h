// SPDX-License-Identifier: Apache-2.0
// A backstore that wraps another one and looks like it. A filter overrides open_queue() to stand
// between the caller and the wrapped queue.
#pragma once

#include <utility>

#include "target/backstore/backstore.h"

namespace vjbod::backstore {

class FilterBackstore : public Backstore {
 public:
  explicit FilterBackstore(std::shared_ptr<Backstore> inner) : inner_(std::move(inner)) {}

  Backstore& inner() const { return *inner_; }

  Geometry geometry() const override { return inner_->geometry(); }
  BackstoreCapabilities capabilities() const override { return inner_->capabilities(); }
  uint64_t allocated_bytes() const override { return inner_->allocated_bytes(); }
  Status resize(uint64_t size_bytes) override { return inner_->resize(size_bytes); }

 private:
  std::shared_ptr<Backstore> inner_;
};

}  // namespace vjbod::backstore
