// SPDX-License-Identifier: Apache-2.0
// The implementation of Nexus: takes tasks in, decides when each may run, finds its command, and
// ends tasks by task management. Owned by the session through Nexus; on the nexus's thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/bytes.h"
#include "target/scsi/execution.h"
#include "target/scsi/lun_map.h"
#include "target/scsi/nexus.h"
#include "target/scsi/nexus_mailbox.h"
#include "target/scsi/scratch.h"

namespace vjbod::scsi {

class DeviceServer final : public Nexus, private NexusMessages, private Deferred {
 public:
  DeviceServer(Reactor& reactor, size_t tasks_max, NexusOwner& owner);
  ~DeviceServer() override;

  void submit(Task& task) override;
  void manage(Management& request) override;
  void drain() override;
  bool idle() const override;
  vjbod::Status set_luns(std::vector<LunMapping> luns) override;

  // --- for commands ---
  const LunMap& luns() const { return luns_; }
  Scratch& scratch() { return scratch_; }
  // Where a command builds its parameter data, before it calls return_parameters().
  ByteWriter parameter_data() { return ByteWriter(parameters_); }
  // Returns what was built, cut to the allocation length and to what the initiator has room for.
  void return_parameters(Execution& execution, const ByteWriter& data, uint64_t allocation_length);

  // --- for Execution ---
  void release(Execution& execution);
  // `unit`: that of the task, null if it had none.
  void after_completion(MappedUnit* unit);

 private:
  // A reset by another nexus: the barrier goes when the unit's tasks up to `newest_task` are gone.
  struct HeldBarrier {
    const LogicalUnit* unit = nullptr;
    uint64_t newest_task = 0;
    std::shared_ptr<ResetBarrier> barrier;
  };

  // Room for the largest: REPORT LUNS of mapped_luns_max.
  static constexpr size_t parameter_bytes_max = 4096;

  void execute(Execution& execution);
  void begin_command(Execution& execution, const CommandEntry& entry);
  void start_waiting(MappedUnit& unit);

  // Ends every task that `affected` names among those that are there now.
  template <typename Affected>
  void abort_if(Affected affected);
  // Whether an aborted task that is not newer than `newest` has still to end.
  template <typename Affected>
  bool any_left(uint64_t newest, Affected affected) const;
  void stop_tasks_of(MappedUnit& unit);
  std::shared_ptr<ResetBarrier> make_barrier(Management& request);
  void reset_unit(MappedUnit& unit, Management& request);
  void reset_all(Management& request);
  bool waits_for_tasks(const Management& request) const;
  void check_waiting();

  // True when there were any.
  bool remove_units_not_in(const std::vector<LunMapping>& luns);
  void close_removed_units();

  void on_unit_reset(LogicalUnit& unit, std::shared_ptr<ResetBarrier> barrier) override;
  void on_capacity_changed(LogicalUnit& unit) override;
  void on_others_reset(Management& request) override;
  void run_deferred() override;

  Reactor& reactor_;
  NexusOwner& owner_;
  const std::shared_ptr<NexusMailbox> mailbox_;
  LunMap luns_;
  std::vector<std::unique_ptr<MappedUnit>> removed_;  // until their last task has ended
  const std::unique_ptr<Execution[]> slots_;
  const size_t slot_count_;
  std::vector<Execution*> free_slots_;
  uint64_t last_sequence_ = 0;
  Scratch scratch_;
  IntrusiveList<Management, Management> managing_;  // wait for tasks or for other nexuses
  IntrusiveList<Management, Management> managed_;   // to be reported in the next loop turn
  std::vector<HeldBarrier> held_barriers_;
  bool draining_ = false;
  bool drained_reported_ = false;
  std::array<std::byte, parameter_bytes_max> parameters_{};
};

}  // namespace vjbod::scsi
