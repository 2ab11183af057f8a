// SPDX-License-Identifier: Apache-2.0
#include "target/iscsi/session_registry.h"

#include <algorithm>

#include "common/base/check.h"

namespace vjbod::target {

using iscsi::LoginStatus;

void SessionRegistry::give_tsih(SessionId session) {
  do {
    ++last_tsih_;
  } while (last_tsih_ == 0 || holder_of_tsih_.contains(last_tsih_));
  holder_of_tsih_[last_tsih_] = session;
  tsih_of_[session] = last_tsih_;
}

void SessionRegistry::take_tsih(SessionId session) {
  const auto tsih = tsih_of_.find(session);
  if (tsih == tsih_of_.end()) return;
  holder_of_tsih_.erase(tsih->second);
  tsih_of_.erase(tsih);
}

void SessionRegistry::forget(SessionId session) {
  const auto entry = entries_.find(session);
  const auto here = at_target_.find(entry->second.key.target_name);
  here->second.erase(session);
  if (here->second.empty()) at_target_.erase(here);
  entries_.erase(entry);
  take_tsih(session);
}

SessionRegistry::Actions SessionRegistry::request(SessionId session, const NexusWish& wish) {
  VJBOD_CHECK(!entries_.contains(session) && !tsih_of_.contains(session));
  Actions actions;
  if (wish.tsih != 0) {
    const auto named = holder_of_tsih_.find(wish.tsih);
    const auto old = named == holder_of_tsih_.end() ? entries_.end() : entries_.find(named->second);
    if (old == entries_.end() || old->second.key != wish.key) {
      actions.refuse.push_back({session, LoginStatus::session_does_not_exist});
      return actions;
    }
    if (old->second.cid != wish.cid) {
      actions.refuse.push_back({session, LoginStatus::too_many_connections});
      return actions;
    }
    take_tsih(old->first);
    holder_of_tsih_[wish.tsih] = session;
    tsih_of_[session] = wish.tsih;
  } else if (tsih_of_.size() >= sessions_max) {
    actions.refuse.push_back({session, LoginStatus::out_of_resources});
    return actions;
  } else {
    give_tsih(session);
  }

  const std::string& target = wish.key.target_name;
  const std::set<SessionId> others = at_target_[target];
  at_target_[target].insert(session);
  entries_[session] = {wish.key, wish.cid, State::waiting};
  for (const SessionId other : others) {
    Entry& entry = entries_.at(other);
    if (!wish.sole && entry.key != wish.key) continue;
    switch (entry.state) {
      case State::waiting:
        // Its initiator has given it up already: only the newest login can be meant.
        actions.refuse.push_back({other, LoginStatus::service_unavailable});
        forget(other);
        break;
      case State::live:
        entry.state = State::ending;
        actions.terminate.push_back(other);
        break;
      case State::ending: break;
    }
  }
  admit_waiting(target, actions);
  return actions;
}

void SessionRegistry::admit_waiting(const std::string& target_name, Actions& actions) {
  const auto here = at_target_.find(target_name);
  if (here == at_target_.end()) return;
  const auto is = [this](State state) {
    return [this, state](SessionId session) { return entries_.at(session).state == state; };
  };
  if (std::any_of(here->second.begin(), here->second.end(), is(State::ending))) return;
  for (const SessionId session : here->second) {
    if (!is(State::waiting)(session)) continue;
    entries_.at(session).state = State::live;
    actions.admit.push_back({session, tsih_of_.at(session)});
  }
}

SessionRegistry::Actions SessionRegistry::request_discovery(SessionId session) {
  Actions actions;
  if (tsih_of_.size() >= sessions_max) {
    actions.refuse.push_back({session, LoginStatus::out_of_resources});
  } else {
    give_tsih(session);
    actions.admit.push_back({session, tsih_of_.at(session)});
  }
  return actions;
}

void SessionRegistry::ending(SessionId session) {
  const auto entry = entries_.find(session);
  if (entry == entries_.end()) return;  // discovery, refused, or never asked
  // One that waits holds no nexus, and will hold none.
  if (entry->second.state == State::waiting)
    forget(session);
  else
    entry->second.state = State::ending;
}

void SessionRegistry::ending_matching(const std::string& initiator_name,
                                      const std::string& target_name) {
  std::vector<SessionId> matching;
  for (const auto& [session, entry] : entries_) {
    if (!initiator_name.empty() && entry.key.initiator_name != initiator_name) continue;
    if (!target_name.empty() && entry.key.target_name != target_name) continue;
    matching.push_back(session);
  }
  for (const SessionId session : matching) ending(session);
}

SessionRegistry::Actions SessionRegistry::ended(SessionId session) {
  Actions actions;
  const auto entry = entries_.find(session);
  if (entry == entries_.end()) {  // discovery, refused, or never asked
    take_tsih(session);
    return actions;
  }
  const std::string target = entry->second.key.target_name;
  forget(session);
  admit_waiting(target, actions);
  return actions;
}

}  // namespace vjbod::target
