// SPDX-License-Identifier: Apache-2.0
// Which session holds which nexus, and the barrier of session reinstatement: a login with the same
// initiator, ISID and target is not admitted before the session it replaces has drained to its last
// backstore operation (RFC 7143 section 6.3.5). Otherwise a write of the dead session could land
// after the write that replaced it. Pure; lives on the home reactor. TSIHs are given out here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
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
    std::vector<SessionId> terminate;  // reinstated: close, drain, then call ended()
    std::vector<Refused> refuse;
    std::vector<Admitted> admit;
  };

  // A login has come to its end and asks to be let in. `tsih` is the one it sent: not 0 means that
  // it wants to add a connection to a session, which is refused with the RFC's status (we have one
  // connection a session).
  Actions request(SessionId session, const NexusKey& key, uint16_t tsih);
  // A discovery session needs a TSIH but holds no nexus.
  Actions request_discovery(SessionId session);
  // The session has gone entirely: connection closed, every task ended. Also for one that still
  // waited.
  Actions ended(SessionId session);

  size_t session_count() const { return tsih_of_.size(); }

 private:
  struct Nexus {
    std::optional<SessionId> holder;  // in full feature phase, or draining
    bool draining = false;            // told to terminate
    std::optional<SessionId> waiter;  // its login waits for the holder's end
  };
  uint16_t give_tsih(SessionId session);

  std::map<NexusKey, Nexus> nexuses_;
  std::map<SessionId, NexusKey> key_of_;   // holders and waiters
  std::map<SessionId, uint16_t> tsih_of_;  // admitted sessions
  std::map<uint16_t, SessionId> holder_of_tsih_;
  uint16_t last_tsih_ = 0;
};

}  // namespace vjbod::target
