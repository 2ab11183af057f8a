// SPDX-License-Identifier: Apache-2.0
// One aligned piece of memory per nexus for the rare commands that need more than the task's own
// buffer (VERIFY, WRITE SAME, a read cut inside a block). One task has it at a time and the others
// wait, so that a peer cannot make memory grow with the number of its commands. It exists only
// while somebody needs it.
#pragma once

#include <cstdlib>
#include <memory>

#include "common/base/bytes.h"
#include "common/base/intrusive_list.h"

namespace vjbod::scsi {

class Scratch;

class ScratchUser : public ListNode<Scratch> {
 public:
  // `memory` is the user's until release(); empty when there is none to be had.
  virtual void on_scratch(Bytes memory) = 0;

 protected:
  ~ScratchUser() = default;
};

class Scratch {
 public:
  static constexpr size_t bytes = 256 * 1024;

  // on_scratch() comes at once, or later from inside somebody's release(). cancel() a user that
  // waits by unlinking it.
  void acquire(ScratchUser& user);
  void release();

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  void give(ScratchUser& user);

  std::unique_ptr<std::byte, Free> memory_;
  bool in_use_ = false;
  IntrusiveList<ScratchUser, Scratch> waiting_;
};

}  // namespace vjbod::scsi
