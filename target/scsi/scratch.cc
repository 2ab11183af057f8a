// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/scratch.h"

namespace vjbod::scsi {

namespace {
constexpr size_t alignment = 4096;  // direct I/O wants pages
}

void Scratch::acquire(ScratchUser& user) {
  if (in_use_) {
    waiting_.push_back(user);
    return;
  }
  give(user);
}

void Scratch::release() {
  in_use_ = false;
  if (waiting_.empty()) {
    memory_.reset();
    return;
  }
  give(waiting_.pop_front());
}

void Scratch::give(ScratchUser& user) {
  in_use_ = true;
  if (memory_ == nullptr) {
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, bytes)));
  }
  user.on_scratch(memory_ == nullptr ? Bytes{} : Bytes{memory_.get(), bytes});
}

}  // namespace vjbod::scsi
