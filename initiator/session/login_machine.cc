// SPDX-License-Identifier: Apache-2.0
#include "initiator/session/login_machine.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/iscsi/chap_exchange.h"
#include "common/iscsi/errc.h"
#include "common/iscsi/keys.h"
#include "common/iscsi/name.h"
#include "common/iscsi/text.h"

namespace vjbod::initiator {

using iscsi::Errc;
using iscsi::Key;
using iscsi::LoginStatus;
using iscsi::LoginVerdict;
using iscsi::Stage;

namespace {

constexpr uint8_t our_version = 0x00;  // the only one there is (RFC 7143 section 11.12.4)
constexpr size_t alias_bytes_max = 255;
constexpr size_t address_bytes_max = 255;

// The pairs of one text, by who deals with them.
struct SortedPairs {
  std::optional<std::string_view> target_alias, target_portal_group_tag, auth_method;
  iscsi::ChapKeys chap;
  std::vector<iscsi::TextPair> operational;  // and unknown ones
};

Status sort_pair(const iscsi::TextPair& pair, SortedPairs& sorted) {
  const iscsi::KeyInfo* key = iscsi::find_key(pair.key);
  if (key == nullptr || key->group == iscsi::KeyGroup::operational) {
    sorted.operational.push_back(pair);
    return {};
  }
  if (!iscsi::may_send(*key, iscsi::Side::target) || key->key == Key::target_name) {
    return fail(Errc::protocol, "key {} must not be sent by a target during login", key->name);
  }
  switch (key->key) {
    case Key::target_alias: sorted.target_alias = pair.value; break;
    case Key::target_portal_group_tag: sorted.target_portal_group_tag = pair.value; break;
    case Key::auth_method: sorted.auth_method = pair.value; break;
    case Key::target_address: break;  // has a meaning in a redirection only
    default: sorted.chap.take(key->key, pair.value); break;
  }
  return {};
}

// The address without the portal group tag: "10.0.0.2:3260,1", "[fe80::1]:3260".
std::optional<std::string> redirect_address(ConstBytes text) {
  const auto pairs = iscsi::split_text(text, iscsi::DuplicateKeys::allowed);
  if (!pairs) return std::nullopt;
  for (const iscsi::TextPair& pair : *pairs) {
    if (pair.key != iscsi::info_of(Key::target_address).name) continue;
    const std::string_view address = pair.value.substr(0, pair.value.find(','));
    const bool graphic =
        std::all_of(address.begin(), address.end(), [](char c) { return c > ' ' && c < '\x7f'; });
    if (address.empty() || address.size() > address_bytes_max || !graphic) return std::nullopt;
    return std::string(address);
  }
  return std::nullopt;
}

iscsi::NegotiationWishes bounded(iscsi::NegotiationWishes wishes,
                                 const transport::Capabilities& capabilities) {
  const auto bound_digest = [&](iscsi::DigestWish& wish) {
    if (!capabilities.digests && wish == iscsi::DigestWish::prefer) wish = iscsi::DigestWish::none;
  };
  bound_digest(wishes.header_digest);
  bound_digest(wishes.data_digest);
  wishes.rdma_extensions = capabilities.rdma_extensions;
  if (capabilities.requires_initial_r2t) wishes.initial_r2t = true;
  wishes.max_recv_data_segment_length =
      std::min(wishes.max_recv_data_segment_length, capabilities.max_recv_data_segment_length);
  return wishes;
}

LoginVerdict verdict_of(const Error& error) {
  const bool permanent = error.code == Errc::authentication || error.code == Errc::negotiation;
  return permanent ? LoginVerdict::permanent : LoginVerdict::retry;
}

}  // namespace

struct LoginMachine::Impl {
  explicit Impl(LoginSettings login_settings)
      : settings(std::move(login_settings)),
        discovery(settings.target_name.empty()),
        negotiation(iscsi::Side::initiator, bounded(settings.wishes, settings.capabilities)) {
    if (discovery) negotiation.set_discovery();
  }

  Status check_settings() const;
  Status check_header(const iscsi::LoginResponse& response, ConstBytes data);
  Status take_text(const iscsi::LoginResponse& response, iscsi::TextBuilder& out);
  Status take_declarations(const SortedPairs& pairs);
  Status authenticate(const SortedPairs& pairs, iscsi::TextBuilder& out);
  Status take_auth_method(std::string_view method, iscsi::TextBuilder& out);
  Status check_authenticated() const;
  Status check_unanswerable(const SortedPairs& pairs, const iscsi::TextBuilder& answers) const;
  Status finish(const iscsi::LoginResponse& response);
  LoginStep request();
  LoginStep fail_with(LoginFailure reason);
  LoginStep fail_with(Error error) { return fail_with(error, verdict_of(error)); }
  LoginStep fail_with(Error error, LoginVerdict verdict);
  LoginStep refused(const iscsi::LoginResponse& response, ConstBytes data);
  Errc code_of(LoginStatus status) const;

  LoginSettings settings;
  bool discovery;
  iscsi::Negotiation negotiation;

  LoginState state = LoginState::in_progress;
  LoginResult result;
  LoginFailure failure;

  size_t responses = 0;
  size_t text_bytes = 0;
  Stage stage = Stage::security;
  bool transit_asked = false;  // by the last request
  SerialNumber exp_stat_sn;
  iscsi::TextAssembler received;
  iscsi::TextSegmenter sending;

  bool auth_method_settled = false;
  bool portal_group_settled = false;
  std::optional<iscsi::ChapInitiator> chap;  // once AuthMethod=CHAP is agreed
};

LoginMachine::LoginMachine(LoginSettings settings)
    : impl_(std::make_unique<Impl>(std::move(settings))) {}
LoginMachine::~LoginMachine() = default;
LoginMachine::LoginMachine(LoginMachine&&) noexcept = default;

LoginState LoginMachine::state() const {
  return impl_->state;
}
const LoginResult& LoginMachine::result() const {
  return impl_->result;
}
const LoginFailure& LoginMachine::failure() const {
  return impl_->failure;
}

LoginStep LoginMachine::start() {
  Impl& self = *impl_;
  VJBOD_CHECK(self.responses == 0 && self.state == LoginState::in_progress);
  if (Status usable = self.check_settings(); !usable) {
    return self.fail_with(std::move(usable).error(), LoginVerdict::permanent);
  }
  iscsi::TextBuilder text;
  text.add("InitiatorName", self.settings.initiator_name);
  if (!self.settings.initiator_alias.empty()) {
    text.add("InitiatorAlias", self.settings.initiator_alias);
  }
  text.add("SessionType", self.discovery ? "Discovery" : "Normal");
  if (!self.discovery) text.add("TargetName", self.settings.target_name);
  text.add("AuthMethod", !self.settings.chap    ? "None"
                         : self.settings.mutual ? "CHAP"
                                                : "CHAP,None");
  self.sending.append(text.take());
  self.transit_asked = !self.settings.chap;
  return self.request();
}

LoginStep LoginMachine::on_other_pdu() {
  if (impl_->state != LoginState::in_progress) return {impl_->state, std::nullopt, {}};
  return impl_->fail_with(
      Error{Errc::protocol, "the target sends another PDU than a Login Response during login"});
}

LoginStep LoginMachine::on_response(const iscsi::LoginResponse& response, ConstBytes data) {
  Impl& self = *impl_;
  if (self.state != LoginState::in_progress) return {self.state, std::nullopt, {}};
  if (Status checked = self.check_header(response, data); !checked) {
    return self.fail_with(std::move(checked).error());
  }
  self.exp_stat_sn = response.stat_sn + 1;
  if (response.status_class != 0) return self.refused(response, data);
  if (response.version_active > our_version) {
    return self.fail_with(
        {Errc::protocol,
         fmt::format("the target speaks iSCSI version {}, version {} is spoken here",
                     response.version_active, our_version)},
        LoginVerdict::permanent);
  }
  if (Status added = self.received.add(data); !added) {
    return self.fail_with(std::move(added).error());
  }
  if (!self.sending.empty() || response.continues) return self.request();

  iscsi::TextBuilder out;
  Status taken = self.take_text(response, out);
  if (taken && response.transit && response.next_stage == Stage::full_feature) {
    taken = self.finish(response);
  }
  if (!taken) return self.fail_with(std::move(taken).error());
  self.received.clear();
  if (self.state == LoginState::done) return {LoginState::done, std::nullopt, {}};
  self.sending.append(out.take());
  return self.request();
}

Status LoginMachine::Impl::check_settings() const {
  const auto wrong = [](const std::string& what) {
    return fail(Errc::login_refused, "login settings: {}", what);
  };
  using iscsi::DigestWish;
  if (Result<std::string> name = iscsi::normalised_name(settings.initiator_name); !name) {
    return wrong("initiator name: " + name.error().text);
  }
  if (!discovery) {
    if (Result<std::string> name = iscsi::normalised_name(settings.target_name); !name) {
      return wrong("target name: " + name.error().text);
    }
  }
  if (settings.initiator_alias.size() > alias_bytes_max ||
      settings.initiator_alias.find('\0') != std::string::npos) {
    return wrong("the initiator alias is too long or has a NUL byte");
  }
  if (settings.chap &&
      (!iscsi::is_chap_name(settings.chap->user) || settings.chap->secret.empty())) {
    return wrong("CHAP needs a user of at most 255 printable bytes and a secret");
  }
  if (settings.chap && settings.chap_algorithms.empty()) return wrong("no CHAP algorithm is set");
  if (settings.mutual && !settings.chap) {
    return wrong("mutual CHAP needs a CHAP secret of the initiator, too");
  }
  if (settings.mutual && settings.mutual->secret.empty()) {
    return wrong("the mutual CHAP secret is empty");
  }
  // Otherwise the target could have us compute the proof that it has to give.
  if (settings.mutual && settings.mutual->secret.same_as(settings.chap->secret)) {
    return wrong("the CHAP secrets of both directions must differ (RFC 7143 section 9.2.1)");
  }
  if (!settings.capabilities.digests && (settings.wishes.header_digest == DigestWish::require ||
                                         settings.wishes.data_digest == DigestWish::require)) {
    return wrong("digests are required, but this transport has none");
  }
  return {};
}

Status LoginMachine::Impl::check_header(const iscsi::LoginResponse& response, ConstBytes data) {
  const auto broken = [](std::string_view what) {
    return fail(Errc::protocol, "login response of the target: {}", what);
  };
  if (++responses > login_responses_max) return broken("too many of them in one login");
  if (response.itt != settings.itt) return broken("its ITT is not the request's");
  if (response.status_class != 0) return {};  // the rest may be anything
  if (response.isid != settings.isid) return broken("its ISID is not ours");
  text_bytes += data.size();
  if (data.size() > iscsi::login_segment_bytes_max) return broken("its data segment is too long");
  if (text_bytes > login_text_bytes_max) {
    return fail(Errc::text_too_long, "the target sends more than {} bytes of text in one login",
                login_text_bytes_max);
  }
  if (response.current_stage != stage) {
    return fail(Errc::bad_stage, "the target is in login stage {}, the initiator in stage {}",
                static_cast<int>(response.current_stage), static_cast<int>(stage));
  }
  if (response.transit && response.continues) return broken("has both the T and the C bit");
  if (response.transit && !transit_asked) return broken("goes to another stage unasked");
  const Stage next = stage == Stage::security ? Stage::operational : Stage::full_feature;
  if (response.transit && response.next_stage != next) {
    return fail(Errc::bad_stage, "the target goes from login stage {} to stage {}, not to {}",
                static_cast<int>(stage), static_cast<int>(response.next_stage),
                static_cast<int>(next));
  }
  if (!sending.empty() && (!data.empty() || response.continues || response.transit)) {
    return broken("says more than go on although our own text is not complete");
  }
  return {};
}

// A whole text has come, perhaps an empty one. Decides what the next request says and asks for.
Status LoginMachine::Impl::take_text(const iscsi::LoginResponse& response,
                                     iscsi::TextBuilder& out) {
  const auto pairs = iscsi::split_text(received.text());
  if (!pairs) return fail(pairs.error());
  SortedPairs sorted;
  for (const iscsi::TextPair& pair : *pairs) {
    if (Status taken = sort_pair(pair, sorted); !taken) return taken;
  }
  if (Status taken = take_declarations(sorted); !taken) return taken;
  if (Status taken = negotiation.receive(sorted.operational, out); !taken) return taken;
  if (response.transit) {
    if (Status taken = check_unanswerable(sorted, out); !taken) return taken;
    out.take();
  }
  if (stage == Stage::security) {
    if (Status taken = authenticate(sorted, out); !taken) return taken;
  } else if (sorted.auth_method || sorted.chap.any()) {
    return fail(Errc::authentication,
                "the target sends authentication keys outside the security stage");
  }
  if (response.transit) {
    if (Status fine = check_authenticated(); !fine) return fine;
    stage = response.next_stage;
    if (stage == Stage::operational) negotiation.offer(out);
  }
  transit_asked = stage == Stage::operational || !chap || chap->answered();
  return {};
}

Status LoginMachine::Impl::take_declarations(const SortedPairs& pairs) {
  if (pairs.target_alias) {
    if (pairs.target_alias->size() > alias_bytes_max) {
      return fail(Errc::bad_value, "TargetAlias has {} bytes, limit {}", pairs.target_alias->size(),
                  alias_bytes_max);
    }
    result.target_alias = iscsi::printable(*pairs.target_alias);
  }
  if (pairs.target_portal_group_tag) {
    const auto tag = iscsi::parse_number(*pairs.target_portal_group_tag);
    if (!tag || !iscsi::in_range(iscsi::info_of(Key::target_portal_group_tag), *tag)) {
      return fail(Errc::bad_value, "TargetPortalGroupTag has the illegal value \"{}\"",
                  iscsi::printable(*pairs.target_portal_group_tag));
    }
    if (portal_group_settled && result.parameters.target_portal_group_tag != *tag) {
      return fail(Errc::protocol, "the target changes its TargetPortalGroupTag during login");
    }
    portal_group_settled = true;
    result.parameters.target_portal_group_tag = static_cast<uint16_t>(*tag);
  }
  return {};
}

Status LoginMachine::Impl::authenticate(const SortedPairs& pairs, iscsi::TextBuilder& out) {
  if (pairs.auth_method) return take_auth_method(*pairs.auth_method, out);
  if (!pairs.chap.any()) return {};
  if (!chap) {
    return fail(Errc::authentication, "the target sends CHAP keys without AuthMethod=CHAP");
  }
  return chap->receive(pairs.chap, out);
}

Status LoginMachine::Impl::take_auth_method(std::string_view method, iscsi::TextBuilder& out) {
  if (auth_method_settled) {
    return fail(Errc::protocol, "the target negotiates AuthMethod again");
  }
  auth_method_settled = true;
  if (method == "None") {
    if (settings.mutual) {
      return fail(Errc::authentication,
                  "the target skips CHAP, but it must prove itself: a mutual secret is set");
    }
    return {};
  }
  if (method == "CHAP" && settings.chap) {
    chap.emplace(settings.chap->copy(),
                 settings.mutual ? std::optional(settings.mutual->copy()) : std::nullopt,
                 settings.chap_algorithms, settings.fill_random);
    chap->begin(out);
    return {};
  }
  return fail(Errc::authentication, "the target answers AuthMethod=\"{}\"; {}",
              iscsi::printable(method),
              settings.chap ? "CHAP is set here" : "no CHAP secret is set here");
}

// The target lets us out of the security stage: has it done its part?
Status LoginMachine::Impl::check_authenticated() const {
  if (chap && !chap->answered()) {
    return fail(Errc::authentication, "the target ends CHAP before it has begun");
  }
  if (settings.mutual && !(chap && chap->done())) {
    return fail(Errc::authentication,
                "the target skips the mutual part of CHAP: it has not proved itself");
  }
  return {};
}

// A target that goes on to the next stage must not ask anything any more. Some do; it does no harm
// where our answer would only repeat their value, or say that we do not know the key.
Status LoginMachine::Impl::check_unanswerable(const SortedPairs& pairs,
                                              const iscsi::TextBuilder& answers) const {
  const auto ours = iscsi::split_text(as_bytes(answers.text()));
  VJBOD_CHECK(ours.has_value());
  for (const iscsi::TextPair& answer : *ours) {
    if (iscsi::is_reserved_answer(answer.value)) continue;
    const bool same = std::any_of(pairs.operational.begin(), pairs.operational.end(),
                                  [&](const iscsi::TextPair& pair) {
                                    return pair.key == answer.key && pair.value == answer.value;
                                  });
    if (!same) {
      return fail(Errc::negotiation,
                  "the target offers {} together with the end of the stage, where it cannot be "
                  "answered",
                  answer.key);
    }
  }
  return {};
}

Status LoginMachine::Impl::finish(const iscsi::LoginResponse& response) {
  if (response.tsih == 0 && !discovery) {
    return fail(Errc::protocol, "the target's final login response has TSIH 0");
  }
  const auto agreed = negotiation.finish();
  if (!agreed) return fail(agreed.error());
  const uint16_t tag = result.parameters.target_portal_group_tag;
  result.parameters = transport::bounded(*agreed, settings.capabilities);
  result.parameters.target_portal_group_tag = tag;
  result.tsih = response.tsih;
  result.target_authenticated = settings.mutual.has_value();
  result.cmd_sn = settings.cmd_sn;
  result.exp_stat_sn = exp_stat_sn;
  result.exp_cmd_sn = response.exp_cmd_sn;
  result.max_cmd_sn = response.max_cmd_sn;
  state = LoginState::done;
  return {};
}

LoginStep LoginMachine::Impl::request() {
  LoginStep step;
  iscsi::LoginRequest request;
  request.continues = sending.continues(iscsi::login_segment_bytes_max);
  step.data = sending.next(iscsi::login_segment_bytes_max);
  request.current_stage = stage;
  request.transit = transit_asked && !request.continues;
  if (request.transit) {
    request.next_stage = stage == Stage::security ? Stage::operational : Stage::full_feature;
  }
  request.version_max = our_version;
  request.version_min = our_version;
  request.isid = settings.isid;
  request.itt = settings.itt;
  request.cid = settings.cid;
  request.cmd_sn = settings.cmd_sn;
  request.exp_stat_sn = exp_stat_sn;
  step.request = request;
  return step;
}

LoginStep LoginMachine::Impl::refused(const iscsi::LoginResponse& response, ConstBytes data) {
  LoginFailure reason;
  reason.status = iscsi::login_status(response.status_class, response.status_detail);
  reason.verdict = iscsi::verdict_of(reason.status);
  reason.error = {code_of(reason.status), iscsi::describe(reason.status)};
  reason.at_chap = chap && stage == Stage::security;
  if (reason.status == LoginStatus::initiator_error && reason.at_chap) {
    reason.error.text += ", in answer to CHAP";
    reason.verdict = LoginVerdict::permanent;
  }
  if (reason.verdict == LoginVerdict::redirect) {
    reason.redirect_permanent = reason.status == LoginStatus::target_moved_permanently;
    if (auto address = redirect_address(data)) {
      reason.error.text += fmt::format(": to {}", *address);
      reason.redirect_address = std::move(*address);
    } else {
      reason.verdict = LoginVerdict::retry;
      reason.error.text += ", but it does not say where to";
    }
  }
  return fail_with(std::move(reason));
}

Errc LoginMachine::Impl::code_of(LoginStatus status) const {
  switch (status) {
    case LoginStatus::authentication_failure: return Errc::authentication;
    case LoginStatus::authorization_failure: return Errc::not_allowed;
    case LoginStatus::not_found:
    case LoginStatus::target_removed: return Errc::target_not_found;
    case LoginStatus::unsupported_version: return Errc::unsupported_version;
    case LoginStatus::initiator_error:
      // Not every target knows the status for it.
      return chap && stage == Stage::security ? Errc::authentication : Errc::login_refused;
    default: return Errc::login_refused;
  }
}

LoginStep LoginMachine::Impl::fail_with(Error error, LoginVerdict verdict) {
  LoginFailure reason;
  reason.at_chap = chap && !chap->answered();
  reason.error = std::move(error);
  reason.verdict = verdict;
  return fail_with(std::move(reason));
}

LoginStep LoginMachine::Impl::fail_with(LoginFailure reason) {
  failure = std::move(reason);
  state = LoginState::failed;
  return {LoginState::failed, std::nullopt, {}};
}

}  // namespace vjbod::initiator
