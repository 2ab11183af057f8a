// SPDX-License-Identifier: Apache-2.0
// The fallback engine: a few threads that make the system calls and wait in them. Slower than
// io_uring, and used only where the kernel refuses that (old kernel, sysctl, seccomp).
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "target/backstore/io_engine.h"

namespace vjbod::backstore {

class ThreadEngine final : public IoEngine {
 public:
  static constexpr size_t thread_count = 4;  // per queue; that many calls wait at a time

  ThreadEngine(Reactor& reactor, const Medium& medium, int flush_fd, StepClient& client);
  ~ThreadEngine() override;

  void start(Op& op) override;

 private:
  void work();
  void hand_over();

  Reactor& reactor_;
  const Medium& medium_;
  const int flush_fd_;
  StepClient& client_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable more_work_;
  IntrusiveList<Op, Op> waiting_;
  IntrusiveList<Op, Op> finished_;  // a hand_over() is posted whenever it is not empty
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace vjbod::backstore
