// SPDX-License-Identifier: Apache-2.0
#include "target/iscsi/session_registry.h"

#include "common/base/check.h"

namespace vjbod::target {

using iscsi::LoginStatus;

uint16_t SessionRegistry::give_tsih(SessionId session) {
  do {
    ++last_tsih_;
  } while (last_tsih_ == 0 || holder_of_tsih_.contains(last_tsih_));
  holder_of_tsih_[last_tsih_] = session;
  tsih_of_[session] = last_tsih_;
  return last_tsih_;
}

SessionRegistry::Actions SessionRegistry::request(SessionId session, const NexusKey& key,
                                                  uint16_t tsih) {
  VJBOD_CHECK(!key_of_.contains(session) && !tsih_of_.contains(session));
  Actions actions;
  if (tsih != 0) {
    auto named = holder_of_tsih_.find(tsih);
    const bool exists = named != holder_of_tsih_.end() && key_of_.contains(named->second) &&
                        key_of_.at(named->second) == key;
    actions.refuse.push_back({session, exists ? LoginStatus::too_many_connections
                                              : LoginStatus::session_does_not_exist});
    return actions;
  }
  if (tsih_of_.size() >= sessions_max) {
    actions.refuse.push_back({session, LoginStatus::out_of_resources});
    return actions;
  }
  Nexus& nexus = nexuses_[key];
  key_of_[session] = key;
  if (!nexus.holder) {
    nexus.holder = session;
    actions.admit.push_back({session, give_tsih(session)});
    return actions;
  }
  if (nexus.waiter) {
    // The initiator has given this attempt up already: only its newest login can be meant.
    actions.refuse.push_back({*nexus.waiter, LoginStatus::service_unavailable});
    key_of_.erase(*nexus.waiter);
  }
  nexus.waiter = session;
  if (!nexus.draining) {
    nexus.draining = true;
    actions.terminate.push_back(*nexus.holder);
  }
  return actions;
}

SessionRegistry::Actions SessionRegistry::request_discovery(SessionId session) {
  Actions actions;
  if (tsih_of_.size() >= sessions_max) {
    actions.refuse.push_back({session, LoginStatus::out_of_resources});
  } else {
    actions.admit.push_back({session, give_tsih(session)});
  }
  return actions;
}

SessionRegistry::Actions SessionRegistry::ended(SessionId session) {
  Actions actions;
  if (auto tsih = tsih_of_.find(session); tsih != tsih_of_.end()) {
    holder_of_tsih_.erase(tsih->second);
    tsih_of_.erase(tsih);
  }
  auto known = key_of_.find(session);
  if (known == key_of_.end()) return actions;  // discovery, refused, or never asked
  auto position = nexuses_.find(known->second);
  key_of_.erase(known);
  Nexus& nexus = position->second;
  if (nexus.waiter == session) {
    nexus.waiter.reset();
  } else {
    VJBOD_CHECK(nexus.holder == session);
    nexus.holder.reset();
    nexus.draining = false;
    if (nexus.waiter) {
      nexus.holder = nexus.waiter;
      nexus.waiter.reset();
      actions.admit.push_back({*nexus.holder, give_tsih(*nexus.holder)});
    }
  }
  if (!nexus.holder && !nexus.waiter) nexuses_.erase(position);
  return actions;
}

}  // namespace vjbod::target
