// SPDX-License-Identifier: Apache-2.0
// The queue of file and block backstores: what the page cache can take or give at once is done
// inside submit(); everything that may wait goes to an IoEngine. An op that the kernel did in part
// is continued until it is done or fails.
#pragma once

#include "target/backstore/completion_queue.h"
#include "target/backstore/io_engine.h"
#include "target/backstore/stall_guard.h"

namespace vjbod::backstore {

class DescriptorQueue final : public BackstoreQueue, private StepClient {
 public:
  // Beyond this size a buffered write is worth a kernel worker, which copies while the shard
  // receives the next one.
  static constexpr uint64_t inline_write_max_bytes = uint64_t{128} << 10;

  // The medium outlives the queue: `backstore` keeps it.
  static Result<std::unique_ptr<BackstoreQueue>> open(Reactor& reactor,
                                                      std::shared_ptr<Medium> medium);
  ~DescriptorQueue() override;

  void submit(Op& op) override;

 private:
  DescriptorQueue(Reactor& reactor, std::shared_ptr<Medium> medium, UniqueFd flush_fd);

  bool read_inline(Op& op);
  bool write_inline(Op& op);
  void start(Op& op);
  void on_step_done(Op& op, int result) override;
  void finish(Op& op, int error_number);

  Reactor& reactor_;
  std::shared_ptr<Medium> medium_;
  UniqueFd flush_fd_;
  CompletionQueue completions_;
  StallGuard stall_guard_;
  bool nowait_reads_ = true;  // until the file system says that it cannot
  std::unique_ptr<IoEngine> engine_;
};

// How the I/O on this medium is done, for BackstoreCapabilities::description.
std::string describe(const Medium& medium);

}  // namespace vjbod::backstore
