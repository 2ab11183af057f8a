// SPDX-License-Identifier: Apache-2.0
// A filter that remembers the last ops and how they ended, and logs each at debug level. For
// finding out what a client really asks for.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "target/backstore/config.h"
#include "target/backstore/filter_backstore.h"

namespace vjbod::backstore {

struct TraceEntry {
  uint64_t number = 0;  // counts finished ops from 1
  OpKind kind = OpKind::read;
  bool fua = false;
  uint64_t offset_bytes = 0;
  uint64_t length_bytes = 0;
  TimePoint submitted{};
  Duration took{};
  int error_number = 0;
};

std::string text_of(const TraceEntry& entry);

// The ring of all shards. Every method from any thread.
class TraceControl {
 public:
  TraceControl(std::string name, size_t entries_max)
      : name_(std::move(name)), entries_max_(entries_max) {}

  // Oldest first.
  std::vector<TraceEntry> entries() const;
  uint64_t finished_ops() const;

  // For the queues; gives the entry its number.
  void add(TraceEntry entry);

 private:
  const std::string name_;
  const size_t entries_max_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<TraceEntry> ring_;
  uint64_t finished_ops_ = 0;
};

class TraceBackstore final : public FilterBackstore {
 public:
  // `name` stands before the log lines.
  TraceBackstore(std::shared_ptr<Backstore> inner, std::string name, size_t entries_max);

  const std::shared_ptr<TraceControl>& control() const { return control_; }
  Result<std::unique_ptr<BackstoreQueue>> open_queue(Reactor& reactor) override;

 private:
  std::shared_ptr<TraceControl> control_;
};

}  // namespace vjbod::backstore
