// SPDX-License-Identifier: Apache-2.0
// A disk of the simulation: each operation takes its time, drawn from the seed, and a write reaches
// the medium at the end of it and not before. A write of a dead session that is still on its way is
// what the target's barrier is about.
#pragma once

#include <cstring>
#include <list>
#include <memory>
#include <vector>

#include "common/runtime/reactor.h"
#include "target/backstore/backstore.h"

namespace vjbod::sim {

class SimBackstore final : public backstore::Backstore {
 public:
  SimBackstore(uint64_t size_bytes, Random random) : medium_(size_bytes), random_(random) {}

  void set_slow(bool slow) { slow_ = slow; }

  backstore::Geometry geometry() const override { return {medium_.size(), 512, 4096, 4096}; }
  backstore::BackstoreCapabilities capabilities() const override {
    backstore::BackstoreCapabilities capabilities;
    capabilities.native_fua = true;
    capabilities.unmap = true;
    capabilities.fast_write_zeroes = true;
    return capabilities;
  }
  uint64_t allocated_bytes() const override { return medium_.size(); }
  Status resize(uint64_t) override {
    return fail(std::make_error_code(std::errc::not_supported), "a simulated disk keeps its size");
  }
  Result<std::unique_ptr<backstore::BackstoreQueue>> open_queue(Reactor& reactor) override {
    return std::make_unique<Queue>(*this, reactor);
  }

 private:
  class Queue final : public backstore::BackstoreQueue {
   public:
    Queue(SimBackstore& store, Reactor& reactor) : store_(store), reactor_(reactor) {}
    void submit(backstore::Op& op) override {
      auto& pending = pending_.emplace_back();
      const auto self = std::prev(pending_.end());
      pending.timer = std::make_unique<Timer>(reactor_, [this, self, &op] {
        store_.apply(op);
        auto keep_alive = std::move(self->timer);  // we run from inside it
        pending_.erase(self);
        op.owner->on_op_done(op, {});
      });
      pending.timer->arm_after(store_.draw_latency());
    }

   private:
    struct Pending {
      std::unique_ptr<Timer> timer;
    };
    SimBackstore& store_;
    Reactor& reactor_;
    std::list<Pending> pending_;
  };

  Duration draw_latency() {
    if (slow_ && random_.chance(1, 8)) return std::chrono::milliseconds(random_.below(6000));
    return std::chrono::microseconds(20 + random_.below(300));
  }
  void apply(const backstore::Op& op) {
    std::byte* at = medium_.data() + op.offset_bytes;
    switch (op.kind) {
      case backstore::OpKind::read: std::memcpy(op.data.data(), at, op.data.size()); break;
      case backstore::OpKind::write: std::memcpy(at, op.data.data(), op.data.size()); break;
      case backstore::OpKind::unmap:
      case backstore::OpKind::write_zeroes: std::memset(at, 0, op.length_bytes); break;
      case backstore::OpKind::flush: break;
    }
  }

  std::vector<std::byte> medium_;
  Random random_;
  bool slow_ = false;
};

}  // namespace vjbod::sim
