// SPDX-License-Identifier: Apache-2.0
// Asks a portal which targets it has (SendTargets in a discovery session, RFC 7143 section 4.3 and
// appendix C). For foreign targets; our own tell over the control channel. One question per object.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "initiator/session/connectors.h"
#include "initiator/session/session.h"
#include "initiator/session/transport_plan.h"

namespace vjbod::initiator {

// More targets, or more addresses of one, are not taken over from a portal.
inline constexpr size_t discovered_targets_max = 4096;
inline constexpr size_t discovered_addresses_max = 64;

struct DiscoveredTarget {
  std::string name;                    // an iSCSI name by grammar
  std::vector<std::string> addresses;  // "10.0.0.2:3260,1" as told, printable; perhaps empty:
                                       // then the portal that was asked serves it
};

// Pure: the text of SendTargets. An error when it is not what the RFC says.
Result<std::vector<DiscoveredTarget>> parse_send_targets(std::string_view text);

// On its reactor's thread. The callback comes once, from the loop, and the object may be destroyed
// in it or later; destroying it earlier is allowed only while nothing is connected yet, so use
// cancel() and wait for the callback.
class Discovery final : private SessionEvents, private Deferred {
 public:
  using Done = std::function<void(Result<std::vector<DiscoveredTarget>>)>;

  // `session.target_name` is ignored.
  Discovery(Reactor& reactor, const Connectors& connectors, const PathCandidate& portal,
            SessionConfig session, Done done);
  ~Discovery();

  void start();
  void cancel();

 private:
  void on_logged_in() override;
  void on_window_open() override {}
  void on_session_closed(const Error& reason, bool permanent) override;
  void run_deferred() override;

  Reactor& reactor_;
  const Connectors& connectors_;
  const PathCandidate portal_;
  SessionConfig config_;
  Done done_;
  std::unique_ptr<transport::ConnectAttempt> attempt_;
  std::unique_ptr<Session> session_;
  Result<std::vector<DiscoveredTarget>> result_;
  bool over_ = false;  // result_ is to be told
};

}  // namespace vjbod::initiator
