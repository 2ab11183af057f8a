// SPDX-License-Identifier: Apache-2.0
// The SCSI side of one session (an I_T nexus, SAM-5 4.6.3): the LUNs this initiator may use, their
// task sets and unit attentions, and the execution of its tasks. Owned by the session; lives on the
// session's shard and is used on that thread only. Each mapped LUN has this shard's queue of its
// backstore.
//
// Calls that come back: any call of a Task's port (put_data, get_data, cancel_data, complete) may
// come from inside submit(), manage(), drain() and on_data_moved(); the port may answer with
// on_data_moved() from inside put_data() or get_data(), and submit() from inside complete().
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/intrusive_list.h"
#include "common/base/result.h"
#include "common/runtime/reactor.h"
#include "target/scsi/logical_unit.h"
#include "target/scsi/task.h"

namespace vjbod::scsi {

// LUNs one initiator can have at a target: its REPORT LUNS answer stays small, and a target reset
// bounded.
inline constexpr size_t mapped_luns_max = 256;

// One LUN as one initiator may use it.
struct LunMapping {
  uint16_t number = 0;  // up to lun_number_max; unique in a list of mappings
  std::shared_ptr<LogicalUnit> unit;
  bool read_only = false;  // for this initiator
};

// SAM-5 7: task management functions, without those for ACA, which we do not have.
enum class ManagementFunction : uint8_t {
  abort_task,
  abort_task_set,
  clear_task_set,  // equal to abort_task_set: the task set is one per nexus (TST 001b, SPC-4 7.5.7)
  logical_unit_reset,
  target_reset,  // of every LUN that this initiator may use, and of no other
};

enum class ManagementResult : uint8_t { done, no_such_unit };

struct Management;

class ManagementOwner {
 public:
  // Exactly once per request, never from inside manage(). Every task that the function ended has
  // had its complete() before, and nothing of them will reach the medium any more, also at the
  // other nexuses for a reset.
  virtual void on_managed(Management& request, ManagementResult result) = 0;

 protected:
  ~ManagementOwner() = default;
};

// A task management request, owned by the caller and untouched by it from manage() to on_managed().
struct Management : ListNode<Management> {
  ManagementFunction function = ManagementFunction::abort_task;
  LunAddress lun{};      // not for target_reset
  Task* task = nullptr;  // abort_task: a task that was submitted here and is not complete yet
  ManagementOwner* owner = nullptr;

  // The nexus's own, from here on.
  uint64_t newest_task = 0;
  bool waits_for_others = false;
  ManagementResult result = ManagementResult::done;
};

class NexusOwner {
 public:
  // After drain(): no task and no request is left. Comes from the reactor's loop, once. The nexus
  // may be destroyed from inside.
  virtual void on_nexus_drained() = 0;

 protected:
  ~NexusOwner() = default;
};

class Nexus {
 public:
  // `tasks_max`: how many tasks may be under way or waiting; one more gets TASK SET FULL. Every LUN
  // begins with the unit attention POWER ON, RESET (29/00). Fails when a backstore gives no queue.
  static Result<std::unique_ptr<Nexus>> open(Reactor& reactor, std::vector<LunMapping> luns,
                                             size_t tasks_max, NexusOwner& owner);
  // Only after on_nexus_drained(), or when nothing was ever submitted.
  virtual ~Nexus() = default;

  // Takes the task in; ends with task.port->complete(). The task stays the caller's and must live
  // until then.
  virtual void submit(Task& task) = 0;
  // Ends tasks. They are marked (task.aborted) and completed in due course: one in a data phase
  // after cancel_data() and its on_data_moved(), one in the backstore after that answered.
  virtual void manage(Management& request) = 0;
  // Aborts everything, for a session that ends. No submit() and no manage() after it.
  virtual void drain() = 0;
  virtual bool idle() const = 0;  // no task, no request

  // The initiator's LUNs are these from now on. Tasks of LUNs that are gone are aborted. A change
  // raises REPORTED LUNS DATA HAS CHANGED (3F/0E). On failure nothing has changed.
  virtual vjbod::Status set_luns(std::vector<LunMapping> luns) = 0;
};

}  // namespace vjbod::scsi
