// SPDX-License-Identifier: Apache-2.0
#include "target/backstore/delay_backstore.h"

#include <algorithm>

namespace vjbod::backstore {

class DelayQueue final : public BackstoreQueue {
 public:
  DelayQueue(Reactor& reactor, std::unique_ptr<BackstoreQueue> inner,
             std::shared_ptr<DelayControl> control)
      : reactor_(reactor),
        inner_(std::move(inner)),
        control_(std::move(control)),
        timer_(reactor, [this] { let_go(); }) {
    control_->enter(*this);
  }
  ~DelayQueue() override {
    VJBOD_CHECK(held_.empty(), "a backstore queue was destroyed while ops are delayed in it");
    control_->leave(*this);
  }

  void submit(Op& op) override {
    auto hold = control_->hold_for(op);
    if (!hold) return inner_->submit(op);
    TimePoint until = hold->delay ? reactor_.now() + *hold->delay : TimePoint::max();
    held_.push_back({&op, hold->rule, until});
    control_->held_.fetch_add(1);
    arm();
  }

  // Any thread, while the control knows this queue.
  void wake() {
    reactor_.post([this, alive = std::weak_ptr<int>(alive_)] {
      if (!alive.expired()) let_go();
    });
  }

 private:
  struct Held {
    Op* op = nullptr;
    DelayControl::RuleId rule = 0;
    TimePoint until{};
  };

  void let_go() {
    std::vector<Op*> free;
    TimePoint now = reactor_.now();
    std::erase_if(held_, [&](const Held& held) {
      if (held.until > now && control_->has(held.rule)) return false;
      free.push_back(held.op);
      return true;
    });
    control_->held_.fetch_sub(free.size());
    arm();
    for (Op* op : free) inner_->submit(*op);
  }

  void arm() {
    TimePoint next = TimePoint::max();
    for (const Held& held : held_) next = std::min(next, held.until);
    if (next == TimePoint::max())
      timer_.cancel();
    else
      timer_.arm_at(next);
  }

  Reactor& reactor_;
  std::unique_ptr<BackstoreQueue> inner_;
  std::shared_ptr<DelayControl> control_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
  std::vector<Held> held_;  // in the order submitted
  Timer timer_;
};

DelayControl::RuleId DelayControl::add(const DelayRule& rule) {
  std::lock_guard lock(mutex_);
  RuleId id = next_id_++;
  rules_.emplace(id, rule);
  armed_.store(true);
  return id;
}

bool DelayControl::remove(RuleId id) {
  std::lock_guard lock(mutex_);
  if (rules_.erase(id) == 0) return false;
  armed_.store(!rules_.empty());
  wake_queues();
  return true;
}

void DelayControl::clear() {
  std::lock_guard lock(mutex_);
  rules_.clear();
  armed_.store(false);
  wake_queues();
}

std::map<DelayControl::RuleId, DelayRule> DelayControl::rules() const {
  std::lock_guard lock(mutex_);
  return rules_;
}

std::optional<DelayControl::Hold> DelayControl::hold_for(const Op& op) const {
  if (!armed_.load()) return std::nullopt;
  std::lock_guard lock(mutex_);
  for (const auto& [id, rule] : rules_)
    if (rule.match.matches(op)) return Hold{id, rule.delay};
  return std::nullopt;
}

bool DelayControl::has(RuleId id) const {
  std::lock_guard lock(mutex_);
  return rules_.contains(id);
}

void DelayControl::enter(DelayQueue& queue) {
  std::lock_guard lock(mutex_);
  queues_.insert(&queue);
}

void DelayControl::leave(DelayQueue& queue) {
  std::lock_guard lock(mutex_);
  queues_.erase(&queue);
}

void DelayControl::wake_queues() {
  for (DelayQueue* queue : queues_) queue->wake();
}

DelayBackstore::DelayBackstore(std::shared_ptr<Backstore> inner,
                               const std::vector<DelayRule>& rules)
    : FilterBackstore(std::move(inner)), control_(std::make_shared<DelayControl>()) {
  for (const DelayRule& rule : rules) control_->add(rule);
}

Result<std::unique_ptr<BackstoreQueue>> DelayBackstore::open_queue(Reactor& reactor) {
  auto queue = inner().open_queue(reactor);
  if (!queue) return queue;
  return std::make_unique<DelayQueue>(reactor, std::move(*queue), control_);
}

}  // namespace vjbod::backstore
