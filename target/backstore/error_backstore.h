// SPDX-License-Identifier: Apache-2.0
// A filter that fails ops: those that a rule names end with its errno and never reach the medium.
// For tests of what happens when a disk fails.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "target/backstore/config.h"
#include "target/backstore/filter_backstore.h"

namespace vjbod::backstore {

// Sets the rules while I/O runs. Every method from any thread; in force for every op submitted
// after it returns. An op obeys the oldest rule that matches.
class ErrorControl {
 public:
  using RuleId = uint64_t;

  RuleId add(const ErrorRule& rule);
  bool remove(RuleId id);  // false when there is no such rule, or it was used up
  void clear();
  // `times` is what is left.
  std::map<RuleId, ErrorRule> rules() const;
  uint64_t failed_ops() const { return failed_ops_.load(); }

  // For the queues: the errno that this op ends with, or 0. The lock is taken only while there are
  // rules.
  int take(const Op& op);

 private:
  std::atomic<bool> armed_ = false;
  std::atomic<uint64_t> failed_ops_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  std::map<RuleId, ErrorRule> rules_;
  RuleId next_id_ = 1;
};

class ErrorBackstore final : public FilterBackstore {
 public:
  ErrorBackstore(std::shared_ptr<Backstore> inner, const std::vector<ErrorRule>& rules);

  const std::shared_ptr<ErrorControl>& control() const { return control_; }
  Result<std::unique_ptr<BackstoreQueue>> open_queue(Reactor& reactor) override;

 private:
  std::shared_ptr<ErrorControl> control_;
};

}  // namespace vjbod::backstore
