// SPDX-License-Identifier: Apache-2.0
// The event loop that a session, its mover, its tasks and its timers live on, as those see it. One
// thread runs it. There are two: AsioReactor (asio_reactor.h) in the daemons, ManualReactor
// (manual_reactor.h) in tests and simulation. This header has no Asio in it, so that protocol code
// cannot grow a dependency on it.
#pragma once

#include <functional>
#include <memory>

#include "common/base/intrusive_list.h"
#include "common/base/random.h"
#include "common/runtime/clock.h"
#include "common/runtime/slab_directory.h"
#include "common/runtime/timer_queue.h"

namespace vjbod {

// Work that runs once at the end of the current loop turn, after all events of the turn were taken
// in. This is how responses made in one turn leave in one write, and how nobody acts from inside
// somebody else's event. Embed it (or derive from it); no allocation. Destroying it takes it off
// the list.
class Deferred : public ListNode<Deferred> {
 public:
  virtual void run_deferred() = 0;

 protected:
  ~Deferred() { unlink(); }
};

// Notices that a descriptor is readable (an eventfd of io_uring, a netlink socket). Destroy it to
// stop watching. The descriptor stays the caller's.
class FdWatch {
 public:
  virtual ~FdWatch() = default;
};

class Reactor {
 public:
  virtual ~Reactor() = default;

  // Monotonic time of this loop turn. Owner thread.
  virtual TimePoint now() const = 0;
  // The only call that any thread may make. Runs `work` on the owner thread, in the order posted.
  // May allocate.
  virtual void post(std::function<void()> work) = 0;
  virtual bool on_owner_thread() const = 0;
  // `on_readable` runs on the owner thread each time the descriptor has become readable; it must
  // read it empty.
  virtual std::unique_ptr<FdWatch> watch_readable(int fd, std::function<void()> on_readable) = 0;

  // Does nothing if it is already waiting. Owner thread.
  void defer(Deferred& work) {
    if (!work.linked()) deferred_.push_back(work);
  }
  TimerQueue& timers() { return timers_; }
  Random& random() { return random_; }
  SlabDirectory& slabs() { return slabs_; }

 protected:
  explicit Reactor(uint64_t random_seed) : random_(random_seed) {}

  // Runs what waits now; what that defers in turn waits for the next call. Returns whether anything
  // ran.
  bool run_deferred() {
    IntrusiveList<Deferred, Deferred> batch;
    batch.append(deferred_);
    if (batch.empty()) return false;
    while (!batch.empty()) batch.pop_front().run_deferred();
    return true;
  }
  bool has_deferred() const { return !deferred_.empty(); }

 private:
  TimerQueue timers_;
  SlabDirectory slabs_;
  Random random_;
  IntrusiveList<Deferred, Deferred> deferred_;
};

}  // namespace vjbod
