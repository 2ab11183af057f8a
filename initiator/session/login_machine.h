// SPDX-License-Identifier: Apache-2.0
// A login seen from the initiator (RFC 7143 section 6.3): Login Responses in, Login Requests out.
// Pure: no I/O, clock, or log. One per connection attempt, on the session's shard.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/iscsi/chap.h"
#include "common/iscsi/login_status.h"
#include "common/iscsi/negotiation.h"
#include "common/iscsi/parameters.h"
#include "common/iscsi/pdu.h"
#include "common/transport/data_mover.h"

namespace vjbod::initiator {

// A target that needs more responses than this is not going to finish.
inline constexpr size_t login_responses_max = 64;
// All text of one login together, in bytes.
inline constexpr size_t login_text_bytes_max = 64 * 1024;

struct LoginSettings {
  std::string initiator_name;
  std::string initiator_alias;  // empty: not sent
  std::string target_name;      // empty: a discovery session
  iscsi::Isid isid{};
  uint16_t cid = 0;
  uint32_t itt = 0;     // of all Login Requests
  SerialNumber cmd_sn;  // of the login and of the first command after it

  // What we prove. With it CHAP is offered, and insisted on when `mutual` is set, too.
  std::optional<iscsi::ChapCredentials> chap;
  // What the target must prove. Needs `chap`, with another secret.
  std::optional<iscsi::ChapCredentials> mutual;
  // In the order offered. Some old targets give up on a list: chap_algorithms_md5_only is for them.
  std::vector<iscsi::ChapAlgorithm> chap_algorithms{iscsi::chap_algorithms_by_strength.begin(),
                                                    iscsi::chap_algorithms_by_strength.end()};

  transport::Capabilities capabilities;  // bounds `wishes`
  iscsi::NegotiationWishes wishes;
  iscsi::FillRandom fill_random;
};

struct LoginResult {
  iscsi::NegotiatedParameters parameters;  // with the target portal group tag
  uint16_t tsih = 0;
  std::string target_alias;
  bool target_authenticated = false;    // it proved the mutual secret
  SerialNumber cmd_sn;                  // of the next command
  SerialNumber exp_stat_sn;             // of the next status
  SerialNumber exp_cmd_sn, max_cmd_sn;  // the window of the final Login Response
};

struct LoginFailure {
  // Whole sentence, for example "login status 0x0201, authentication failure".
  Error error;
  iscsi::LoginVerdict verdict = iscsi::LoginVerdict::retry;  // never success
  // What the target answered; success when it was we who gave up.
  iscsi::LoginStatus status = iscsi::LoginStatus::success;
  // With verdict redirect: the TargetAddress without its portal group tag, "10.0.0.2:3260".
  std::string redirect_address;
  bool redirect_permanent = false;
  // It ended at CHAP, before the target had accepted our proof. With other algorithms it might go
  // better: some targets choke on a list of them, or take a number for another algorithm.
  bool at_chap = false;
};

enum class LoginState : uint8_t { in_progress, done, failed };

struct LoginStep {
  LoginState state = LoginState::in_progress;
  std::optional<iscsi::LoginRequest> request;  // to be sent, with `data` as its data segment
  std::string data;
};

// After `done` or `failed` every call answers with that state and nothing to send.
class LoginMachine {
 public:
  explicit LoginMachine(LoginSettings settings);
  ~LoginMachine();
  LoginMachine(LoginMachine&&) noexcept;

  LoginStep start();  // once; fails when the settings contradict themselves
  LoginStep on_response(const iscsi::LoginResponse& response, ConstBytes data);
  LoginStep on_other_pdu();  // nothing but a Login Response may come now

  LoginState state() const;
  const LoginResult& result() const;    // when done
  const LoginFailure& failure() const;  // when failed

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vjbod::initiator
