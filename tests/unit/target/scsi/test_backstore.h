// SPDX-License-Identifier: Apache-2.0
// A backstore in a vector, whose operations can be held back or made to fail.
#pragma once

#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "target/backstore/backstore.h"
#include "target/backstore/completion_queue.h"

namespace vjbod::scsi::test {

class TestBackstore final : public backstore::Backstore {
 public:
  explicit TestBackstore(uint64_t blocks, uint32_t block_bytes = 512)
      : geometry_{.size_bytes = blocks * block_bytes, .block_bytes = block_bytes} {
    capabilities_.unmap = true;
    bytes.resize(geometry_.size_bytes, std::byte{0});
  }

  backstore::Geometry geometry() const override { return geometry_; }
  backstore::BackstoreCapabilities capabilities() const override { return capabilities_; }
  uint64_t allocated_bytes() const override { return bytes.size(); }
  vjbod::Status resize(uint64_t size_bytes) override {
    bytes.resize(size_bytes, std::byte{0});
    geometry_.size_bytes = size_bytes;
    return {};
  }
  Result<std::unique_ptr<backstore::BackstoreQueue>> open_queue(Reactor& reactor) override {
    if (no_queue) return fail(system_code(EMFILE), "no queue to be had");
    return std::make_unique<Queue>(*this, reactor);
  }

  // Lets the held operations run, in order.
  void release() {
    hold = false;
    while (!held_.empty()) {
      auto [queue, op] = held_.front();
      held_.pop_front();
      queue->carry_out(*op);
    }
  }
  size_t held() const { return held_.size(); }
  size_t count(backstore::OpKind kind) const {
    return static_cast<size_t>(std::count(kinds.begin(), kinds.end(), kind));
  }

  backstore::Geometry geometry_;
  backstore::BackstoreCapabilities capabilities_;
  std::vector<std::byte> bytes;
  std::vector<backstore::OpKind> kinds;  // of all operations that came
  std::vector<bool> fua;                 // likewise
  bool hold = false;
  bool no_queue = false;
  // The next operation of this kind fails.
  std::optional<std::pair<backstore::OpKind, int>> fail_next;

 private:
  class Queue final : public backstore::BackstoreQueue {
   public:
    Queue(TestBackstore& store, Reactor& reactor) : store_(store), completions_(reactor) {}
    void submit(backstore::Op& op) override {
      store_.kinds.push_back(op.kind);
      store_.fua.push_back(op.fua);
      VJBOD_CHECK(op.offset_bytes + op.length_bytes <= store_.bytes.size());
      VJBOD_CHECK(op.offset_bytes % store_.geometry_.block_bytes == 0);
      VJBOD_CHECK(op.length_bytes % store_.geometry_.block_bytes == 0);
      if (store_.hold) {
        store_.held_.emplace_back(this, &op);
      } else {
        carry_out(op);
      }
    }
    void carry_out(backstore::Op& op) { completions_.add(op, store_.carry_out(op)); }

   private:
    TestBackstore& store_;
    backstore::CompletionQueue completions_;
  };

  int carry_out(backstore::Op& op) {
    if (fail_next && fail_next->first == op.kind) {
      return std::exchange(fail_next, std::nullopt)->second;
    }
    std::byte* place = bytes.data() + op.offset_bytes;
    switch (op.kind) {
      case backstore::OpKind::read: std::memcpy(op.data.data(), place, op.data.size()); break;
      case backstore::OpKind::write: std::memcpy(place, op.data.data(), op.data.size()); break;
      case backstore::OpKind::unmap:
      case backstore::OpKind::write_zeroes: std::memset(place, 0, op.length_bytes); break;
      case backstore::OpKind::flush: break;
    }
    return 0;
  }

  std::deque<std::pair<Queue*, backstore::Op*>> held_;
};

}  // namespace vjbod::scsi::test
