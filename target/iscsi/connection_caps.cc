// SPDX-License-Identifier: Apache-2.0
#include "target/iscsi/connection_caps.h"

#include <algorithm>

#include "common/base/check.h"

namespace vjbod::target {

ConnectionCaps::Answer ConnectionCaps::reserve(const std::string& address) {
  Answer answer;
  const auto from_address = per_address_.find(address);
  const bool address_full =
      from_address != per_address_.end() && from_address->second >= per_address_max_;
  if (address_full || total_ >= total_max_) {
    const auto victim = std::find_if(half_open_.begin(), half_open_.end(), [&](SessionId session) {
      return !address_full || connections_.at(session).address == address;
    });
    if (victim == half_open_.end()) return answer;
    answer.evict = *victim;
    connections_.at(*victim).half_open = false;
    half_open_.erase(victim);
  }
  answer.accepted = true;
  ++total_;
  ++per_address_[address];
  return answer;
}

void ConnectionCaps::release(const std::string& address) {
  const auto count = per_address_.find(address);
  VJBOD_CHECK(count != per_address_.end() && total_ > 0);
  --total_;
  if (--count->second == 0) per_address_.erase(count);
}

void ConnectionCaps::abandoned(const std::string& address) {
  release(address);
}

void ConnectionCaps::adopted(SessionId session, const std::string& address) {
  connections_[session] = {address, true};
  half_open_.push_back(session);
}

void ConnectionCaps::logged_in(SessionId session) {
  const auto connection = connections_.find(session);
  if (connection == connections_.end() || !connection->second.half_open) return;
  connection->second.half_open = false;
  std::erase(half_open_, session);
}

void ConnectionCaps::ended(SessionId session) {
  logged_in(session);
  const auto connection = connections_.find(session);
  VJBOD_CHECK(connection != connections_.end());
  release(connection->second.address);
  connections_.erase(connection);
}

}  // namespace vjbod::target
