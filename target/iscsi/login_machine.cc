// SPDX-License-Identifier: Apache-2.0
#include "target/iscsi/login_machine.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/iscsi/chap_exchange.h"
#include "common/iscsi/errc.h"
#include "common/iscsi/keys.h"
#include "common/iscsi/name.h"
#include "common/iscsi/text.h"

namespace vjbod::target {

using iscsi::Errc;
using iscsi::Key;
using iscsi::LoginStatus;
using iscsi::Stage;

namespace {

constexpr uint8_t our_version = 0x00;  // the only one there is (RFC 7143 section 11.12.4)
constexpr size_t alias_bytes_max = 255;

// Why a login ends: what the peer is told and what the log is.
struct Refusal {
  LoginStatus status;
  Error error;
};
using Outcome = tl::expected<void, Refusal>;

template <typename... Args>
tl::unexpected<Refusal> refused(LoginStatus status, Errc code, fmt::format_string<Args...> format,
                                Args&&... args) {
  return tl::unexpected(Refusal{status, {code, fmt::format(format, std::forward<Args>(args)...)}});
}

tl::unexpected<Refusal> refused(LoginStatus status, Error error) {
  return tl::unexpected(Refusal{status, std::move(error)});
}

bool list_has(std::string_view list, std::string_view wanted) {
  while (const auto item = iscsi::next_list_item(list)) {
    if (*item == wanted) return true;
  }
  return false;
}

bool is_stage(Stage stage) {
  return stage == Stage::security || stage == Stage::operational || stage == Stage::full_feature;
}

// The pairs of one text, by who deals with them.
struct SortedPairs {
  std::optional<std::string_view> session_type, initiator_name, initiator_alias, target_name;
  std::optional<std::string_view> auth_method;
  iscsi::ChapKeys chap;
  std::vector<iscsi::TextPair> operational;  // and unknown ones
};

Outcome sort_pair(const iscsi::TextPair& pair, SortedPairs& sorted) {
  const iscsi::KeyInfo* key = iscsi::find_key(pair.key);
  if (key == nullptr || key->group == iscsi::KeyGroup::operational) {
    sorted.operational.push_back(pair);
    return {};
  }
  if (!iscsi::may_send(*key, iscsi::Side::initiator) ||
      key->phase == iscsi::KeyPhase::full_feature) {
    return refused(LoginStatus::initiator_error, Errc::protocol,
                   "key {} must not be sent by an initiator during login", key->name);
  }
  switch (key->key) {
    case Key::session_type: sorted.session_type = pair.value; break;
    case Key::initiator_name: sorted.initiator_name = pair.value; break;
    case Key::initiator_alias: sorted.initiator_alias = pair.value; break;
    case Key::target_name: sorted.target_name = pair.value; break;
    case Key::auth_method: sorted.auth_method = pair.value; break;
    default: sorted.chap.take(key->key, pair.value); break;
  }
  return {};
}

iscsi::NegotiationWishes bounded(iscsi::NegotiationWishes wishes,
                                 const transport::Capabilities& capabilities) {
  if (!capabilities.digests) wishes.header_digest = wishes.data_digest = iscsi::DigestWish::none;
  wishes.rdma_extensions = capabilities.rdma_extensions;
  if (capabilities.requires_initial_r2t) wishes.initial_r2t = true;
  wishes.max_recv_data_segment_length =
      std::min(wishes.max_recv_data_segment_length, capabilities.max_recv_data_segment_length);
  return wishes;
}

}  // namespace

struct LoginMachine::Impl {
  Impl(LoginSettings login_settings, const LoginPolicy& login_policy)
      : settings(std::move(login_settings)),
        policy(login_policy),
        negotiation(iscsi::Side::target, bounded(settings.wishes, settings.capabilities)) {}

  Outcome check_header(const iscsi::LoginRequest& request, ConstBytes data);
  Outcome take_text();
  Outcome identify(const SortedPairs& pairs);
  Outcome authenticate(const SortedPairs& pairs);
  Outcome choose_auth_method(std::string_view list);
  Outcome decide_transit(const SortedPairs& pairs);
  LoginStep respond();
  LoginStep fail_with(Refusal refusal);
  iscsi::LoginResponse make_response();

  // PDUs that were on their way when the login ended change nothing.
  bool over() const { return state == LoginState::done || state == LoginState::failed; }
  bool authenticated() const { return !required || (chap && chap->done()); }

  LoginSettings settings;
  const LoginPolicy& policy;
  iscsi::Negotiation negotiation;

  LoginState state = LoginState::in_progress;
  LoginOutcome outcome;
  Error error;

  iscsi::LoginRequest last_request;
  size_t requests = 0;
  size_t text_bytes = 0;
  Stage stage = Stage::security;
  std::optional<Stage> transit;  // granted; goes out with the last piece of text
  iscsi::TextAssembler received;
  iscsi::TextBuilder answers;
  iscsi::TextSegmenter sending;  // text that waits for the initiator's next request

  bool identified = false;
  bool auth_method_settled = false;
  bool declared = false;  // our own operational keys are out
  std::optional<ChapRequirement> required;
  std::optional<iscsi::ChapTarget> chap;
  SerialNumber stat_sn;
};

LoginMachine::LoginMachine(LoginSettings settings, const LoginPolicy& policy)
    : impl_(std::make_unique<Impl>(std::move(settings), policy)) {}
LoginMachine::~LoginMachine() = default;
LoginMachine::LoginMachine(LoginMachine&&) noexcept = default;

LoginState LoginMachine::state() const {
  return impl_->state;
}
const LoginOutcome& LoginMachine::outcome() const {
  return impl_->outcome;
}
const Error& LoginMachine::error() const {
  return impl_->error;
}

LoginStep LoginMachine::on_request(const iscsi::LoginRequest& request, ConstBytes data) {
  Impl& self = *impl_;
  if (self.over()) return {self.state, std::nullopt, {}};
  Outcome checked = self.check_header(request, data);
  self.last_request = request;
  if (!checked) return self.fail_with(std::move(checked).error());

  if (!self.sending.empty()) return self.respond();
  if (Status added = self.received.add(data); !added) {
    return self.fail_with({LoginStatus::initiator_error, std::move(added).error()});
  }
  if (!request.continues) {
    Outcome taken = self.take_text();
    if (!taken) return self.fail_with(std::move(taken).error());
  }
  return self.respond();
}

LoginStep LoginMachine::on_other_pdu() {
  return refuse(LoginStatus::invalid_during_login, "a PDU other than a Login Request came");
}

LoginStep LoginMachine::refuse(LoginStatus status, std::string_view reason) {
  const Errc code = status == LoginStatus::authentication_failure ? Errc::authentication  //
                    : status == LoginStatus::invalid_during_login ? Errc::protocol
                                                                  : Errc::login_refused;
  return impl_->fail_with({status, {code, std::string(reason)}});
}

LoginStep LoginMachine::admit(uint16_t tsih) {
  Impl& self = *impl_;
  VJBOD_CHECK(self.state == LoginState::admission_pending && tsih != 0);
  LoginStep step;
  step.data = self.sending.next(iscsi::login_segment_bytes_max);
  step.response = self.make_response();
  step.response->transit = true;
  step.response->next_stage = Stage::full_feature;
  step.response->tsih = tsih;
  self.outcome.exp_cmd_sn = self.last_request.cmd_sn;
  self.outcome.next_stat_sn = self.stat_sn;
  step.state = self.state = LoginState::done;
  return step;
}

// RFC 7143 section 11.12: what every request of one login must keep to.
Outcome LoginMachine::Impl::check_header(const iscsi::LoginRequest& request, ConstBytes data) {
  const auto broken = [](std::string_view what) {
    return refused(LoginStatus::initiator_error, Errc::protocol, "login request: {}", what);
  };
  const bool first = requests++ == 0;
  // The numbering may begin anywhere; what the initiator expects is the safest place.
  if (first) stat_sn = request.exp_stat_sn;
  if (state == LoginState::admission_pending) return broken("comes before the last one's answer");
  if (request.version_min > our_version) {
    return refused(LoginStatus::unsupported_version, Errc::protocol,
                   "the initiator needs iSCSI version {} or above; version {} is spoken here",
                   request.version_min, our_version);
  }
  if (first) {
    outcome.isid = request.isid;
    outcome.cid = request.cid;
    outcome.tsih_requested = request.tsih;
    stage = request.current_stage;
    if (stage != Stage::security && stage != Stage::operational) {
      return refused(LoginStatus::initiator_error, Errc::bad_stage, "the login begins in stage {}",
                     static_cast<int>(stage));
    }
  } else if (request.isid != outcome.isid || request.cid != outcome.cid ||
             request.tsih != outcome.tsih_requested) {
    return broken("ISID, CID or TSIH differs from the first request's");
  }
  if (requests > login_requests_max) return broken("too many of them in one login");
  text_bytes += data.size();
  if (data.size() > iscsi::login_segment_bytes_max) return broken("its data segment is too long");
  if (text_bytes > login_text_bytes_max) {
    return refused(LoginStatus::initiator_error, Errc::text_too_long,
                   "the login has more than {} bytes of text", login_text_bytes_max);
  }
  if (request.current_stage != stage) {
    return refused(LoginStatus::initiator_error, Errc::bad_stage,
                   "the initiator is in login stage {}, not in stage {} like the target",
                   static_cast<int>(request.current_stage), static_cast<int>(stage));
  }
  if (request.transit && request.continues) return broken("has both the T and the C bit");
  if (request.transit &&
      (!is_stage(request.next_stage) || request.next_stage <= request.current_stage)) {
    return refused(LoginStatus::initiator_error, Errc::bad_stage,
                   "the initiator asks to go from login stage {} to stage {}",
                   static_cast<int>(request.current_stage), static_cast<int>(request.next_stage));
  }
  if (!sending.empty() && (!data.empty() || request.continues)) {
    return broken("has text although the target's own text is not complete");
  }
  return {};
}

// A whole text has come, perhaps an empty one.
Outcome LoginMachine::Impl::take_text() {
  const auto pairs = iscsi::split_text(received.text());
  if (!pairs) return refused(LoginStatus::initiator_error, pairs.error());
  SortedPairs sorted;
  for (const iscsi::TextPair& pair : *pairs) {
    if (Outcome taken = sort_pair(pair, sorted); !taken) return taken;
  }
  if (Outcome done = identify(sorted); !done) return done;
  if (Outcome done = authenticate(sorted); !done) return done;
  if (Status done = negotiation.receive(sorted.operational, answers); !done) {
    return refused(LoginStatus::initiator_error, std::move(done).error());
  }
  if (stage == Stage::operational && !declared) {
    declared = true;
    negotiation.offer(answers);
  }
  if (last_request.transit) {
    if (Outcome done = decide_transit(sorted); !done) return done;
  }
  received.clear();
  sending.append(answers.take());
  return {};
}

// The keys of the first text say who wants what (RFC 7143 section 6.3.1); after that they are
// settled.
Outcome LoginMachine::Impl::identify(const SortedPairs& pairs) {
  if (identified) {
    if (pairs.initiator_name || pairs.target_name || pairs.session_type ||
        (pairs.initiator_alias && !outcome.initiator_alias.empty())) {
      return refused(LoginStatus::initiator_error, Errc::protocol,
                     "the initiator names itself, the target or the session type again");
    }
  }
  if (pairs.initiator_alias) {
    if (pairs.initiator_alias->size() > alias_bytes_max) {
      return refused(LoginStatus::initiator_error, Errc::bad_value,
                     "InitiatorAlias has {} bytes, limit {}", pairs.initiator_alias->size(),
                     alias_bytes_max);
    }
    outcome.initiator_alias = iscsi::printable(*pairs.initiator_alias);
  }
  if (identified) return {};

  if (!pairs.initiator_name) {
    return refused(LoginStatus::missing_parameter, Errc::protocol, "InitiatorName is missing");
  }
  Result<std::string> initiator_name = iscsi::normalised_name(*pairs.initiator_name);
  if (!initiator_name) {
    return refused(LoginStatus::initiator_error, Errc::bad_name, "InitiatorName: {}",
                   initiator_name.error().text);
  }
  outcome.initiator_name = std::move(*initiator_name);
  const std::string_view type = pairs.session_type.value_or("Normal");
  if (type != "Normal" && type != "Discovery") {
    return refused(LoginStatus::session_type_not_supported, Errc::bad_value,
                   "SessionType \"{}\" is unknown", iscsi::printable(type));
  }
  outcome.parameters.discovery = type == "Discovery";
  if (outcome.parameters.discovery) negotiation.set_discovery();
  if (pairs.target_name) {
    Result<std::string> target_name = iscsi::normalised_name(*pairs.target_name);
    if (!target_name) {
      return refused(LoginStatus::initiator_error, Errc::bad_name, "TargetName: {}",
                     target_name.error().text);
    }
    outcome.target_name = std::move(*target_name);
  } else if (!outcome.parameters.discovery) {
    return refused(LoginStatus::missing_parameter, Errc::protocol, "TargetName is missing");
  }
  identified = true;

  LoginDecision decision =
      policy.decide({outcome.initiator_name, outcome.target_name, outcome.parameters.discovery});
  switch (decision.access) {
    case LoginDecision::Access::allowed: break;
    case LoginDecision::Access::not_found:
      return refused(LoginStatus::not_found, Errc::login_refused, "target {} does not exist",
                     outcome.target_name);
    case LoginDecision::Access::forbidden:
      // Who may not use a target does not learn whether it is there; the log tells.
      return refused(outcome.parameters.discovery ? LoginStatus::authorization_failure
                                                  : LoginStatus::not_found,
                     Errc::login_refused, "this initiator is not known here");
    case LoginDecision::Access::unavailable:
      return refused(LoginStatus::service_unavailable, Errc::login_refused,
                     "target {} is not available now", outcome.target_name);
  }
  required = std::move(decision.chap);
  if (!outcome.parameters.discovery) {
    // RFC 7143 section 13.9: in the first Login Response.
    answers.add("TargetPortalGroupTag", uint64_t{settings.target_portal_group_tag});
    const std::string alias = iscsi::printable(decision.target_alias);
    if (!alias.empty()) answers.add("TargetAlias", alias);
  }
  return {};
}

Outcome LoginMachine::Impl::authenticate(const SortedPairs& pairs) {
  if (pairs.auth_method) {
    if (Outcome chosen = choose_auth_method(*pairs.auth_method); !chosen) return chosen;
  }
  if (stage == Stage::operational) {
    // Reached only by an initiator that began here or has been let through.
    if (!authenticated()) {
      return refused(LoginStatus::authentication_failure, Errc::authentication,
                     "the initiator skips CHAP, which is required");
    }
    if (pairs.chap.any()) {
      return refused(LoginStatus::authentication_failure, Errc::authentication,
                     "CHAP keys come outside the security stage");
    }
    return {};
  }
  if (!pairs.chap.any()) return {};
  if (!chap) {
    return refused(LoginStatus::authentication_failure, Errc::authentication,
                   "CHAP keys come, but AuthMethod=CHAP was not agreed");
  }
  if (Status done = chap->receive(pairs.chap, answers); !done) {
    return refused(LoginStatus::authentication_failure, std::move(done).error());
  }
  if (chap->done()) outcome.authenticated_user = chap->authenticated_user();
  return {};
}

Outcome LoginMachine::Impl::choose_auth_method(std::string_view list) {
  if (auth_method_settled) {
    return refused(LoginStatus::initiator_error, Errc::protocol, "AuthMethod is negotiated again");
  }
  auth_method_settled = true;
  const std::string_view method = required ? "CHAP" : "None";
  if (!list_has(list, method)) {
    return refused(LoginStatus::authentication_failure, Errc::authentication,
                   "AuthMethod={} is needed here, the initiator offers \"{}\"", method,
                   iscsi::printable(list));
  }
  answers.add("AuthMethod", method);
  if (required && stage == Stage::security) {
    chap.emplace(required->initiator.copy(),
                 required->mutual ? std::optional(required->mutual->copy()) : std::nullopt,
                 required->algorithms, settings.fill_random);
  }
  return {};
}

// The initiator asks to go on; whether it may depends on the authentication.
Outcome LoginMachine::Impl::decide_transit(const SortedPairs& pairs) {
  if (stage == Stage::security && !authenticated()) {
    // It is on its way: some set the T bit in every request. Stay, and go on with CHAP.
    if (pairs.auth_method || pairs.chap.any()) return {};
    return refused(LoginStatus::authentication_failure, Errc::authentication,
                   "the initiator skips CHAP, which is required");
  }
  if (last_request.next_stage == Stage::full_feature) {
    auto agreed = negotiation.finish();
    if (!agreed) return refused(LoginStatus::initiator_error, std::move(agreed).error());
    outcome.parameters = transport::bounded(*agreed, settings.capabilities);
    outcome.parameters.target_portal_group_tag = settings.target_portal_group_tag;
  }
  transit = last_request.next_stage;
  return {};
}

// The next piece of text, with the granted transition once it is the last.
LoginStep LoginMachine::Impl::respond() {
  LoginStep step;
  const bool continues = sending.continues(iscsi::login_segment_bytes_max);
  if (!continues && transit == Stage::full_feature) {
    step.state = state = LoginState::admission_pending;
    return step;
  }
  step.data = sending.next(iscsi::login_segment_bytes_max);
  step.response = make_response();
  step.response->continues = continues;
  if (!continues && transit) {
    step.response->transit = true;
    step.response->next_stage = *transit;
    stage = *transit;
    transit.reset();
  }
  return step;
}

LoginStep LoginMachine::Impl::fail_with(Refusal refusal) {
  if (over()) return {state, std::nullopt, {}};
  LoginStep step;
  step.state = state = LoginState::failed;
  error.code = refusal.error.code;
  error.text = outcome.initiator_name.empty()
                   ? fmt::format("login failed with {:#06x}: {}",
                                 static_cast<unsigned>(refusal.status), refusal.error.text)
                   : fmt::format("login of {} failed with {:#06x}: {}", outcome.initiator_name,
                                 static_cast<unsigned>(refusal.status), refusal.error.text);
  if (requests == 0) return step;
  step.response = make_response();
  step.response->status_class = iscsi::status_class(refusal.status);
  step.response->status_detail = iscsi::status_detail(refusal.status);
  return step;
}

iscsi::LoginResponse LoginMachine::Impl::make_response() {
  iscsi::LoginResponse response;
  response.current_stage = stage;
  response.version_max = our_version;
  response.version_active = our_version;
  response.isid = last_request.isid;
  response.tsih = last_request.tsih;
  response.itt = last_request.itt;
  response.stat_sn = stat_sn;
  response.exp_cmd_sn = last_request.cmd_sn;
  response.max_cmd_sn = last_request.cmd_sn + (settings.command_window - 1);
  ++stat_sn;
  return response;
}

}  // namespace vjbod::target
