// SPDX-License-Identifier: Apache-2.0
#include "target/backstore/trace_backstore.h"

#include "common/base/log.h"

namespace vjbod::backstore {

namespace {

class TraceQueue final : public BackstoreQueue, private OpOwner {
 public:
  TraceQueue(Reactor& reactor, std::unique_ptr<BackstoreQueue> inner,
             std::shared_ptr<TraceControl> control)
      : reactor_(reactor), inner_(std::move(inner)), control_(std::move(control)) {}
  ~TraceQueue() override {
    while (!free_.empty()) free_.pop_front();
  }

  void submit(Op& op) override {
    Traced& traced = take();
    traced.kind = op.kind;
    traced.fua = op.fua;
    traced.may_unmap = op.may_unmap;
    traced.offset_bytes = op.offset_bytes;
    traced.length_bytes = op.length_bytes;
    traced.data = op.data;
    traced.owner = this;
    traced.outer = &op;
    traced.submitted = reactor_.now();
    inner_->submit(traced);
  }

 private:
  // Stands in for the caller's op, so that its end comes by here.
  struct Traced : Op {
    Op* outer = nullptr;
    TimePoint submitted{};
  };

  Traced& take() {
    if (!free_.empty()) return static_cast<Traced&>(free_.pop_front());
    all_.push_back(std::make_unique<Traced>());
    return *all_.back();
  }

  void on_op_done(Op& op, std::error_code error) override {
    auto& traced = static_cast<Traced&>(op);
    control_->add({.kind = traced.kind,
                   .fua = traced.fua,
                   .offset_bytes = traced.offset_bytes,
                   .length_bytes = traced.length_bytes,
                   .submitted = traced.submitted,
                   .took = reactor_.now() - traced.submitted,
                   .error_number = error.value()});
    Op& outer = *traced.outer;
    free_.push_back(traced);
    outer.owner->on_op_done(outer, error);
  }

  Reactor& reactor_;
  std::unique_ptr<BackstoreQueue> inner_;
  std::shared_ptr<TraceControl> control_;
  std::vector<std::unique_ptr<Traced>> all_;  // as many as were ever outstanding at once
  IntrusiveList<Op, Op> free_;
};

}  // namespace

std::string text_of(const TraceEntry& entry) {
  std::string result = entry.error_number == 0 ? "ok" : system_code(entry.error_number).message();
  return fmt::format("#{} {}{} {}+{} {} us {}", entry.number, name_of(entry.kind),
                     entry.fua ? " fua" : "", entry.offset_bytes, entry.length_bytes,
                     std::chrono::duration_cast<std::chrono::microseconds>(entry.took).count(),
                     result);
}

std::vector<TraceEntry> TraceControl::entries() const {
  std::lock_guard lock(mutex_);
  std::vector<TraceEntry> result;
  result.reserve(ring_.size());
  // Once the ring is full, the oldest entry is where the next one goes.
  size_t oldest = ring_.size() < entries_max_ ? 0 : finished_ops_ % entries_max_;
  for (size_t i = 0; i < ring_.size(); ++i) result.push_back(ring_[(oldest + i) % ring_.size()]);
  return result;
}

uint64_t TraceControl::finished_ops() const {
  std::lock_guard lock(mutex_);
  return finished_ops_;
}

void TraceControl::add(TraceEntry entry) {
  {
    std::lock_guard lock(mutex_);
    if (ring_.size() < entries_max_) ring_.emplace_back();
    entry.number = finished_ops_ + 1;
    ring_[finished_ops_ % entries_max_] = entry;
    ++finished_ops_;
  }
  if (log::enabled(LogLevel::debug)) log::debug("[{}] {}", name_, text_of(entry));
}

TraceBackstore::TraceBackstore(std::shared_ptr<Backstore> inner, std::string name,
                               size_t entries_max)
    : FilterBackstore(std::move(inner)),
      control_(std::make_shared<TraceControl>(std::move(name), entries_max)) {}

Result<std::unique_ptr<BackstoreQueue>> TraceBackstore::open_queue(Reactor& reactor) {
  auto queue = inner().open_queue(reactor);
  if (!queue) return queue;
  return std::make_unique<TraceQueue>(reactor, std::move(*queue), control_);
}

}  // namespace vjbod::backstore
