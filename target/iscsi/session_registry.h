// SPDX-License-Identifier: Apache-2.0
// Which sessions hold which nexuses, and the fence between the old ones of a target and a new one:
// no login gets its final response before every session of its target that has ended, or was told
// to, is gone to its last backstore operation, whoever had it (RFC 7143 section 6.3.5 asks this for
// the same initiator and ISID only). Otherwise a write of a dead session could land after one that
// was acknowledged later. Sessions that live are left alone, but for those that the login replaces.
// Pure; lives on the home reactor. TSIHs are given out here.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/iscsi/login_status.h"
#include "common/iscsi/pdu.h"

namespace vjbod::target {

// Names one session of this daemon, for as long as the daemon runs. Never reused.
using SessionId = uint64_t;

struct NexusKey {
  std::string initiator_name;
  iscsi::Isid isid{};
  std::string target_name;
  auto operator<=>(const NexusKey&) const = default;
};

// What a login asks for.
struct NexusWish {
  NexusKey key;
  uint16_t tsih = 0;  // not 0: the session that it reinstates
  uint16_t cid = 0;
  // The target is for one nexus at a time: every other session of it makes way.
  bool sole = false;
};

class SessionRegistry {
 public:
  static constexpr size_t sessions_max = 65535;  // TSIH is 16 bits, 0 means none

  struct Admitted {
    SessionId session = 0;
    uint16_t tsih = 0;
  };
  struct Refused {
    SessionId session = 0;
    iscsi::LoginStatus status = iscsi::LoginStatus::target_error;
  };
  // What the caller has to do now, in this order.
  struct Actions {
    std::vector<SessionId> terminate;  // replaced: close, drain, then call ended()
    std::vector<Refused> refuse;
    std::vector<Admitted> admit;
  };

  // A login has come to its end and asks to be let in. One with a TSIH reinstates its session,
  // whose TSIH it keeps, when initiator, ISID and CID are that session's (section 6.3.4). Another
  // CID would be a second connection: we have one a session.
  Actions request(SessionId session, const NexusWish& wish);
  // A discovery session needs a TSIH but holds no nexus.
  Actions request_discovery(SessionId session);
  // The session has begun to end, or was told to. From here on logins to its target wait for it.
  void ending(SessionId session);
  // The same for all that match; an empty string matches every name.
  void ending_matching(const std::string& initiator_name, const std::string& target_name);
  // The session has gone entirely: connection closed, every task ended. Also for one that still
  // waited.
  Actions ended(SessionId session);

 private:
  enum class State : uint8_t { waiting, live, ending };
  struct Entry {
    NexusKey key;
    uint16_t cid = 0;
    State state = State::waiting;
  };
  void give_tsih(SessionId session);
  void take_tsih(SessionId session);
  void forget(SessionId session);
  void admit_waiting(const std::string& target_name, Actions& actions);

  std::map<SessionId, Entry> entries_;
  std::map<std::string, std::set<SessionId>> at_target_;  // of entries_
  std::map<SessionId, uint16_t> tsih_of_;                 // also of those that wait
  std::map<uint16_t, SessionId> holder_of_tsih_;
  uint16_t last_tsih_ = 0;
};

}  // namespace vjbod::target
