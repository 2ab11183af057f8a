// SPDX-License-Identifier: Apache-2.0
// A task while it is at this device server: a slot, made before any I/O, that holds the command's
// course (Work) and its one backstore operation. It takes the answers of the transport side and of
// the backstore, stops an aborted task at the next step, and ends it once. On the nexus's thread.
#pragma once

#include <cstdint>
#include <utility>
#include <variant>

#include "target/backstore/backstore.h"
#include "target/scsi/flush_work.h"
#include "target/scsi/mapped_unit.h"
#include "target/scsi/outcome.h"
#include "target/scsi/read_work.h"
#include "target/scsi/scratch.h"
#include "target/scsi/task.h"
#include "target/scsi/task_set.h"
#include "target/scsi/unmap_work.h"
#include "target/scsi/verify_work.h"
#include "target/scsi/write_same_work.h"
#include "target/scsi/write_work.h"

namespace vjbod::scsi {

class DeviceServer;
struct CommandEntry;

class Execution final : public TaskExecution,
                        public backstore::OpOwner,
                        public ScratchUser,
                        public TaskSetMember {
 public:
  // --- the device server's side ---
  void set_server(DeviceServer& server) { server_ = &server; }
  // `unit` is null for a LUN that is not mapped.
  void begin(Task& task, MappedUnit* unit, uint64_t sequence);
  bool in_use() const { return task_ != nullptr; }
  uint64_t sequence() const { return sequence_; }
  // For a task that was marked as aborted: ends it now, or has the step under way end soon.
  void stop();

  // --- the command's side ---
  DeviceServer& server() { return *server_; }
  Task& task() const { return *task_; }
  bool has_unit() const { return unit_ != nullptr; }
  MappedUnit& unit() const { return *unit_; }
  // What the initiator means to move in this direction.
  uint64_t expected_bytes(DataDirection direction) const {
    return task_->direction == direction ? task_->expected_data_bytes : 0;
  }

  // Starts the command's course; it may be over when this returns.
  template <typename SomeWork, typename... Args>
  void run(Args&&... args) {
    SomeWork& work = storage_.emplace<SomeWork>(*this, std::forward<Args>(args)...);
    work_ = &work;
    work.start();
  }

  // One step at a time; each is answered by the matching call of Work.
  void put(uint64_t offset, size_t length);
  void get(uint64_t offset, size_t length);
  struct Flags {
    bool fua = false;
  };
  void submit(backstore::OpKind kind, uint64_t offset_bytes, Bytes data) {
    submit(kind, offset_bytes, data, Flags{});
  }
  void submit(backstore::OpKind kind, uint64_t offset_bytes, Bytes data, Flags flags);
  void submit_range(backstore::OpKind kind, uint64_t offset_bytes, uint64_t length_bytes,
                    bool may_unmap);
  // Fails without asking the backstore once a flush of this unit has failed.
  void flush();
  backstore::OpKind op_kind() const { return op_.kind; }
  void want_scratch();

  // The end of the task. The slot may be in use by another task when this returns.
  void finish(const Outcome& outcome);
  // The same, with the last piece of data, so that both leave together.
  void put_and_finish(uint64_t offset, size_t length, const Outcome& outcome);

 private:
  enum class Step : uint8_t { none, data, operation, scratch };

  void on_data_moved(Task& task) override;
  void on_op_done(backstore::Op& op, std::error_code error) override;
  void on_scratch(Bytes memory) override;
  bool stop_if_aborted();
  // Frees the slot; `last_call` is the last one of the task's port.
  template <typename LastCall>
  void end(LastCall last_call);

  DeviceServer* server_ = nullptr;
  Task* task_ = nullptr;
  MappedUnit* unit_ = nullptr;
  Work* work_ = nullptr;
  uint64_t sequence_ = 0;
  Step step_ = Step::none;
  bool data_cancelled_ = false;
  bool has_scratch_ = false;
  backstore::Op op_;
  std::variant<std::monostate, ReadWork, WriteWork, FlushWork, VerifyWork, WriteSameWork, UnmapWork>
      storage_;
};

}  // namespace vjbod::scsi
