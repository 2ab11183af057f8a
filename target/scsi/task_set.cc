// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/task_set.h"

namespace vjbod::scsi {

bool TaskSet::enter(TaskSetMember& member, TaskAttribute attribute) {
  member.attribute_ = attribute;
  member.running_ = false;
  bool may_run = false;
  switch (attribute) {
    case TaskAttribute::head_of_queue: may_run = true; break;
    case TaskAttribute::ordered: may_run = empty(); break;
    case TaskAttribute::simple:
    case TaskAttribute::aca: may_run = barriers_running_ == 0 && waiting_.empty(); break;
  }
  if (may_run) {
    run(member);
  } else {
    waiting_.push_back(member);
  }
  return may_run;
}

void TaskSet::leave(TaskSetMember& member) {
  member.unlink();
  if (!member.running_) return;
  member.running_ = false;
  --running_count_;
  if (member.attribute_ == TaskAttribute::ordered ||
      member.attribute_ == TaskAttribute::head_of_queue) {
    --barriers_running_;
  }
}

TaskSetMember* TaskSet::next() {
  if (waiting_.empty()) return nullptr;
  TaskSetMember& first = waiting_.front();
  const bool may_run =
      first.attribute_ == TaskAttribute::ordered ? running_count_ == 0 : barriers_running_ == 0;
  if (!may_run) return nullptr;
  first.unlink();
  run(first);
  return &first;
}

void TaskSet::run(TaskSetMember& member) {
  member.running_ = true;
  running_.push_back(member);
  ++running_count_;
  if (member.attribute_ == TaskAttribute::ordered ||
      member.attribute_ == TaskAttribute::head_of_queue) {
    ++barriers_running_;
  }
}

}  // namespace vjbod::scsi
