// SPDX-License-Identifier: Apache-2.0
// Notices that an address or a link of this box came or went: a socket that becomes readable then.
// The owner lets its reactor watch it, reads it empty, and looks at the interfaces again.
#pragma once

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace vjbod::net {

class AddressWatch {
 public:
  static Result<AddressWatch> open();

  int fd() const { return socket_.get(); }
  // Takes all news that are there. They say no more than that something has changed.
  void read_empty();

 private:
  explicit AddressWatch(UniqueFd socket) : socket_(std::move(socket)) {}
  UniqueFd socket_;
};

}  // namespace vjbod::net
