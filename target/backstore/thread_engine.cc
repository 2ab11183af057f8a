// SPDX-License-Identifier: Apache-2.0
#include "target/backstore/thread_engine.h"

#include <pthread.h>

namespace vjbod::backstore {

ThreadEngine::ThreadEngine(Reactor& reactor, const Medium& medium, int flush_fd, StepClient& client)
    : reactor_(reactor), medium_(medium), flush_fd_(flush_fd), client_(client) {
  for (size_t i = 0; i < thread_count; ++i) threads_.emplace_back([this] { work(); });
}

ThreadEngine::~ThreadEngine() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  more_work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadEngine::start(Op& op) {
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back(op);
  }
  more_work_.notify_one();
}

void ThreadEngine::work() {
  ::pthread_setname_np(::pthread_self(), "backstore-io");
  std::unique_lock lock(mutex_);
  while (true) {
    more_work_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Op& op = waiting_.pop_front();
    lock.unlock();
    int result = run_step(medium_, flush_fd_, plan_step(medium_, op));
    lock.lock();
    op.notes.step_result = result;
    bool first = finished_.empty();
    finished_.push_back(op);
    if (first) reactor_.post([this] { hand_over(); });
  }
}

void ThreadEngine::hand_over() {
  IntrusiveList<Op, Op> batch;
  {
    std::lock_guard lock(mutex_);
    batch.append(finished_);
  }
  while (!batch.empty()) {
    Op& op = batch.pop_front();
    client_.on_step_done(op, op.notes.step_result);
  }
}

}  // namespace vjbod::backstore
