// SPDX-License-Identifier: Apache-2.0
#include "target/backstore/error_backstore.h"

#include "target/backstore/completion_queue.h"

namespace vjbod::backstore {

namespace {

class ErrorQueue final : public BackstoreQueue {
 public:
  ErrorQueue(Reactor& reactor, std::unique_ptr<BackstoreQueue> inner,
             std::shared_ptr<ErrorControl> control)
      : inner_(std::move(inner)), control_(std::move(control)), completions_(reactor) {}

  void submit(Op& op) override {
    int error_number = control_->take(op);
    if (error_number == 0) return inner_->submit(op);
    op.notes = {};
    completions_.add(op, error_number);
  }

 private:
  std::unique_ptr<BackstoreQueue> inner_;
  std::shared_ptr<ErrorControl> control_;
  CompletionQueue completions_;
};

}  // namespace

ErrorControl::RuleId ErrorControl::add(const ErrorRule& rule) {
  std::lock_guard lock(mutex_);
  RuleId id = next_id_++;
  if (rule.times != uint64_t{0}) rules_.emplace(id, rule);
  armed_.store(!rules_.empty());
  return id;
}

bool ErrorControl::remove(RuleId id) {
  std::lock_guard lock(mutex_);
  bool found = rules_.erase(id) != 0;
  armed_.store(!rules_.empty());
  return found;
}

void ErrorControl::clear() {
  std::lock_guard lock(mutex_);
  rules_.clear();
  armed_.store(false);
}

std::map<ErrorControl::RuleId, ErrorRule> ErrorControl::rules() const {
  std::lock_guard lock(mutex_);
  return rules_;
}

int ErrorControl::take(const Op& op) {
  if (!armed_.load()) return 0;
  std::lock_guard lock(mutex_);
  for (auto at = rules_.begin(); at != rules_.end(); ++at) {
    ErrorRule& rule = at->second;
    if (!rule.match.matches(op)) continue;
    int error_number = rule.error_number;
    if (rule.times && --*rule.times == 0) rules_.erase(at);
    armed_.store(!rules_.empty());
    failed_ops_.fetch_add(1);
    return error_number;
  }
  return 0;
}

ErrorBackstore::ErrorBackstore(std::shared_ptr<Backstore> inner,
                               const std::vector<ErrorRule>& rules)
    : FilterBackstore(std::move(inner)), control_(std::make_shared<ErrorControl>()) {
  for (const ErrorRule& rule : rules) control_->add(rule);
}

Result<std::unique_ptr<BackstoreQueue>> ErrorBackstore::open_queue(Reactor& reactor) {
  auto queue = inner().open_queue(reactor);
  if (!queue) return queue;
  return std::make_unique<ErrorQueue>(reactor, std::move(*queue), control_);
}

}  // namespace vjbod::backstore
