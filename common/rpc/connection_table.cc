// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/connection_table.h"

#include <algorithm>

#include <sys/stat.h>

namespace vjbod::rpc {

namespace {

// 0 when there is no such descriptor.
ino_t inode_of(int fd) {
  struct stat found {};
  return fstat(fd, &found) == 0 ? found.st_ino : 0;
}

}  // namespace

bool ConnectionTable::admit(int fd, const std::string& address) {
  forget_closed();
  auto of_address = std::count_if(connections_.begin(), connections_.end(),
                                  [&](const Connection& c) { return c.address == address; });
  if (connections_.size() >= connections_max_ ||
      static_cast<size_t>(of_address) >= per_address_max_)
    return false;
  connections_.push_back({fd, inode_of(fd), address});
  return true;
}

size_t ConnectionTable::size() {
  forget_closed();
  return connections_.size();
}

void ConnectionTable::forget_closed() {
  std::erase_if(connections_, [](const Connection& c) { return inode_of(c.fd) != c.inode; });
}

}  // namespace vjbod::rpc
