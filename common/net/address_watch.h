// SPDX-License-Identifier: Apache-2.0
// Notices that an address, a link or an RDMA device of this box came or went: a descriptor that
// becomes readable then. The owner lets its reactor watch it, reads it empty, and looks at the
// interfaces again.
#pragma once

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace vjbod::net {

class AddressWatch {
 public:
  static Result<AddressWatch> open();

  int fd() const { return both_.get(); }
  // Takes all news that are there. They say no more than that something has changed; false: nothing
  // that matters here.
  bool read_empty();

 private:
  AddressWatch(UniqueFd addresses, UniqueFd devices, UniqueFd both)
      : addresses_(std::move(addresses)), devices_(std::move(devices)), both_(std::move(both)) {}

  UniqueFd addresses_;  // rtnetlink(7)
  UniqueFd devices_;    // the kernel's device events; not valid where they cannot be had
  UniqueFd both_;       // epoll(7) over the two
};

}  // namespace vjbod::net
