// SPDX-License-Identifier: Apache-2.0
// The io_uring engine: one ring per queue, submissions collected and handed to the kernel once per
// loop turn, completions noticed through an eventfd that the reactor watches.
#pragma once

#include <liburing.h>

#include "target/backstore/io_engine.h"

namespace vjbod::backstore {

class UringEngine final : public IoEngine, private Deferred {
 public:
  static constexpr unsigned submission_entries = 256;
  static constexpr unsigned in_kernel_max = 1024;  // also the completion ring's size

  // The error says why this kernel refuses a ring.
  static Result<std::unique_ptr<UringEngine>> open(Reactor& reactor, const Medium& medium,
                                                   int flush_fd, StepClient& client);
  // Whether open() would succeed on this thread, as text: empty or the reason why not.
  static std::string refusal();
  ~UringEngine() override;

  void start(Op& op) override;

 private:
  UringEngine(Reactor& reactor, const Medium& medium, StepClient& client);
  void run_deferred() override;
  void on_completions();
  bool prepare(Op& op);
  void submit();

  Reactor& reactor_;
  const Medium& medium_;
  StepClient& client_;
  io_uring ring_{};
  UniqueFd eventfd_;
  std::unique_ptr<FdWatch> watch_;
  unsigned in_ring_ = 0;           // prepared or in the kernel
  IntrusiveList<Op, Op> waiting_;  // for room in the ring
};

}  // namespace vjbod::backstore
