// SPDX-License-Identifier: Apache-2.0
// A login seen from the target (RFC 7143 section 6.3): Login Requests in, Login Responses out.
// Pure: no I/O, clock, or log. One per connection, on its shard, for the login phase only.
//
// Between the last request and the final response the machine stands in admission_pending: the
// caller drains the nexus that this login replaces, registers the session, and only then calls
// admit(). Nothing of the final response exists before.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/iscsi/chap.h"
#include "common/iscsi/login_status.h"
#include "common/iscsi/negotiation.h"
#include "common/iscsi/parameters.h"
#include "common/iscsi/pdu.h"
#include "common/transport/data_mover.h"

namespace vjbod::target {

// A login is over after this many requests, come what may. A login with CHAP takes four or five;
// the rest is room for text in many small pieces.
inline constexpr size_t login_requests_max = 64;
// All text of one login together, in bytes.
inline constexpr size_t login_text_bytes_max = 64 * 1024;

// Who asks for what. The names have passed the grammar of iSCSI names and are in lower case.
struct LoginIdentity {
  std::string_view initiator_name;
  std::string_view target_name;  // empty for a discovery session that names none
  bool discovery = false;
};

struct ChapRequirement {
  iscsi::ChapCredentials initiator;              // what the initiator must prove
  std::optional<iscsi::ChapCredentials> mutual;  // what we prove when it asks
  // The first of the initiator's list that is in here is taken.
  std::vector<iscsi::ChapAlgorithm> algorithms{iscsi::chap_algorithms_by_strength.begin(),
                                               iscsi::chap_algorithms_by_strength.end()};
};

struct LoginDecision {
  enum class Access : uint8_t {
    allowed,
    not_found,    // 0x0203: no such target, or not for this initiator
    forbidden,    // no such initiator: 0x0203 too, for a discovery session 0x0202
    unavailable,  // 0x0301
  };
  Access access = Access::not_found;
  std::optional<ChapRequirement> chap;  // none: no authentication
  std::string target_alias;             // empty: not sent; cut after 64 bytes
  // The target is for one nexus at a time: a login ends every other session of it.
  bool sole_nexus = false;
};

class LoginPolicy {
 public:
  // Asked once per login, as soon as both names are known, before anything is proved.
  virtual LoginDecision decide(const LoginIdentity& identity) const = 0;

 protected:
  ~LoginPolicy() = default;
};

struct LoginSettings {
  transport::Capabilities capabilities;  // bounds `wishes`
  iscsi::NegotiationWishes wishes;
  uint16_t target_portal_group_tag = 1;
  uint32_t command_window = 64;  // commands; MaxCmdSN of the responses
  iscsi::FillRandom fill_random;
};

// Complete from admission_pending on.
struct LoginOutcome {
  iscsi::NegotiatedParameters parameters;
  std::string initiator_name;
  std::string initiator_alias;
  std::string target_name;  // empty for a discovery session that names none
  iscsi::Isid isid{};
  uint16_t cid = 0;
  uint16_t tsih_requested = 0;     // 0: a new session; else a session that must exist
  std::string authenticated_user;  // empty: nobody asked for authentication
  SerialNumber exp_cmd_sn;         // of the first command of full feature phase
  SerialNumber next_stat_sn;       // of the first status after the final Login Response
};

enum class LoginState : uint8_t { in_progress, admission_pending, done, failed };

struct LoginStep {
  LoginState state = LoginState::in_progress;
  // To be sent, with `data` as its data segment. Comes with every step but one that ends in
  // admission_pending, and with a failure where nothing may be answered.
  std::optional<iscsi::LoginResponse> response;
  std::string data;
};

// After `done` or `failed` every call answers with that state and nothing to send.
class LoginMachine {
 public:
  // `policy` outlives the machine.
  LoginMachine(LoginSettings settings, const LoginPolicy& policy);
  ~LoginMachine();
  LoginMachine(LoginMachine&&) noexcept;

  LoginStep on_request(const iscsi::LoginRequest& request, ConstBytes data);
  // Any other PDU came. Before the first Login Request it is answered by closing, afterwards with
  // status 0x020b.
  LoginStep on_other_pdu();
  // Leaves admission_pending. `tsih` is not zero.
  LoginStep admit(uint16_t tsih);
  // Ends the login with this status, in admission_pending or earlier (a limit, a shutdown); before
  // the first request there is nothing to answer.
  LoginStep refuse(iscsi::LoginStatus status, std::string_view reason);

  LoginState state() const;
  const LoginOutcome& outcome() const;
  // Why it failed. Names what the initiator is called if that is known; holds no raw peer bytes.
  const Error& error() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vjbod::target
