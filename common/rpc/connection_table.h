// SPDX-License-Identifier: Apache-2.0
// Which accepted connections are still open, for limits. gRPC owns the descriptors and tells nobody
// when it closes one; but a descriptor that was closed, or used again for something else, has
// another inode, and that can be asked.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sys/types.h>

namespace vjbod::rpc {

class ConnectionTable {
 public:
  ConnectionTable(size_t connections_max, size_t per_address_max)
      : connections_max_(connections_max), per_address_max_(per_address_max) {}

  // True, and remembers the connection, when no limit is reached. `fd` is an open socket.
  bool admit(int fd, const std::string& address);
  // How many are open now.
  size_t size();

 private:
  struct Connection {
    int fd;
    ino_t inode;
    std::string address;
  };
  void forget_closed();

  size_t connections_max_, per_address_max_;
  std::vector<Connection> connections_;
};

}  // namespace vjbod::rpc
