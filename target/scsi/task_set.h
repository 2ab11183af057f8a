// SPDX-License-Identifier: Apache-2.0
// The task set of one LUN at one nexus: which tasks may run now and which wait (SAM-5 8.6 to 8.9).
// SIMPLE tasks run beside each other; an ORDERED one waits for all before it and holds back all
// after it; a HEAD OF QUEUE one runs at once and holds back later SIMPLE and ORDERED ones.
#pragma once

#include <cstddef>

#include "common/base/intrusive_list.h"
#include "common/scsi/status.h"

namespace vjbod::scsi {

class TaskSet;

// What takes part: derive from it. On one task set at a time.
class TaskSetMember : public ListNode<TaskSet> {
 public:
  TaskAttribute attribute() const { return attribute_; }

 private:
  friend class TaskSet;
  TaskAttribute attribute_ = TaskAttribute::simple;
  bool running_ = false;
};

class TaskSet {
 public:
  // True: run it now. False: it waits until next() names it.
  bool enter(TaskSetMember& member, TaskAttribute attribute);
  // It ended, or was aborted while it waited.
  void leave(TaskSetMember& member);
  // The next waiting one that may run now, as running; null if there is none.
  TaskSetMember* next();
  bool has_waiting() const { return !waiting_.empty(); }
  bool empty() const { return running_count_ == 0 && waiting_.empty(); }

 private:
  void run(TaskSetMember& member);

  IntrusiveList<TaskSetMember, TaskSet> running_;
  IntrusiveList<TaskSetMember, TaskSet> waiting_;
  size_t running_count_ = 0;
  size_t barriers_running_ = 0;  // ORDERED and HEAD OF QUEUE
};

}  // namespace vjbod::scsi
