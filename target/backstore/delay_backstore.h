// SPDX-License-Identifier: Apache-2.0
// A filter that holds ops back before they reach the medium: for a time, or until they are let go.
// What is held has not happened yet; others overtake it. For tests of what happens with a slow
// disk.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "target/backstore/config.h"
#include "target/backstore/filter_backstore.h"

namespace vjbod::backstore {

class DelayQueue;

// Sets the rules while I/O runs. Every method from any thread; in force for every op submitted
// after it returns. An op obeys the oldest rule that matches.
class DelayControl {
 public:
  using RuleId = uint64_t;

  RuleId add(const DelayRule& rule);
  // Also lets go what the rule holds. False when there is no such rule.
  bool remove(RuleId id);
  void clear();
  std::map<RuleId, DelayRule> rules() const;
  // How many ops wait right now, on all shards.
  size_t held() const { return held_.load(); }

 private:
  friend class DelayQueue;
  struct Hold {
    RuleId rule = 0;
    std::optional<Duration> delay;
  };
  // The lock is taken only while there are rules.
  std::optional<Hold> hold_for(const Op& op) const;
  bool has(RuleId id) const;
  void enter(DelayQueue& queue);
  void leave(DelayQueue& queue);
  void wake_queues();  // mutex_ is held

  std::atomic<bool> armed_ = false;
  std::atomic<size_t> held_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  std::map<RuleId, DelayRule> rules_;
  RuleId next_id_ = 1;
  std::set<DelayQueue*> queues_;
};

class DelayBackstore final : public FilterBackstore {
 public:
  DelayBackstore(std::shared_ptr<Backstore> inner, const std::vector<DelayRule>& rules);

  const std::shared_ptr<DelayControl>& control() const { return control_; }
  Result<std::unique_ptr<BackstoreQueue>> open_queue(Reactor& reactor) override;

 private:
  std::shared_ptr<DelayControl> control_;
};

}  // namespace vjbod::backstore
