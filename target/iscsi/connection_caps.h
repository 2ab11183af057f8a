// SPDX-License-Identifier: Apache-2.0
// How many connections there may be, in total and from one address. A connection that has not
// logged in makes way, oldest first, when a limit is reached: whoever opens connections and says
// nothing cannot keep others out. Pure; home reactor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "target/iscsi/session_registry.h"

namespace vjbod::target {

class ConnectionCaps {
 public:
  ConnectionCaps(size_t total_max, size_t per_address_max)
      : total_max_(total_max), per_address_max_(per_address_max) {}

  struct Answer {
    bool accepted = false;
    std::optional<SessionId> evict;  // close this one: it makes way
  };
  // A connection from `address` wants in. If accepted, adopted() or abandoned() follows.
  Answer reserve(const std::string& address);
  void abandoned(const std::string& address);
  void adopted(SessionId session, const std::string& address);
  void logged_in(SessionId session);
  void ended(SessionId session);

  size_t total() const { return total_; }

 private:
  void release(const std::string& address);

  struct Connection {
    std::string address;
    bool half_open = true;  // in the login phase and not told to go yet
  };
  const size_t total_max_, per_address_max_;
  size_t total_ = 0;
  std::map<std::string, size_t> per_address_;
  std::map<SessionId, Connection> connections_;
  std::vector<SessionId> half_open_;  // oldest first
};

}  // namespace vjbod::target
