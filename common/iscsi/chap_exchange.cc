// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/chap_exchange.h"

#include <algorithm>
#include <utility>

#include "common/iscsi/binary_value.h"
#include "common/iscsi/errc.h"

namespace vjbod::iscsi {

namespace {

constexpr uint64_t identifier_max = 255;

template <typename... Args>
tl::unexpected<Error> refused(fmt::format_string<Args...> format, Args&&... args) {
  return fail(Errc::authentication, format, std::forward<Args>(args)...);
}

Result<uint8_t> parse_identifier(std::string_view value) {
  const auto number = parse_number(value);
  if (!number || *number > identifier_max) {
    return refused("CHAP_I has the illegal value \"{}\"", printable(value));
  }
  return static_cast<uint8_t>(*number);
}

Result<std::vector<std::byte>> parse_bytes(std::string_view key, std::string_view value,
                                           size_t bytes_max) {
  auto bytes = decode_binary_value(value, bytes_max);
  if (!bytes) return refused("{}: {}", key, bytes.error().text);
  return bytes;
}

bool is_known(const std::vector<ChapAlgorithm>& algorithms, std::optional<uint64_t> number) {
  const auto algorithm = number ? chap_algorithm(*number) : std::nullopt;
  return algorithm &&
         std::find(algorithms.begin(), algorithms.end(), *algorithm) != algorithms.end();
}

// A challenge as long as the digest, and an identifier, that differ from the ones the other end has
// used: otherwise a response to one direction would do for the other.
Status fresh_challenge(const FillRandom& fill_random, ChapAlgorithm algorithm,
                       ConstBytes other_challenge, uint8_t other_identifier, uint8_t& identifier,
                       std::vector<std::byte>& challenge) {
  std::byte random_identifier{};
  fill_random(Bytes(&random_identifier, 1));
  identifier = std::to_integer<uint8_t>(random_identifier);
  if (!other_challenge.empty() && identifier == other_identifier) ++identifier;
  challenge.resize(digest_bytes(algorithm));
  fill_random(challenge);
  if (equal_constant_time(challenge, other_challenge)) {
    return refused("the peer's CHAP challenge is the one drawn here");
  }
  return {};
}

// Whether `value` is the right response. The time does not depend on how much of it is right.
Result<bool> proves(std::string_view value, ChapAlgorithm algorithm, uint8_t identifier,
                    const Secret& secret, ConstBytes challenge) {
  const auto response = parse_bytes("CHAP_R", value, digest_bytes(algorithm));
  if (!response) return fail(response.error());
  const auto expected = chap_response(algorithm, identifier, secret, challenge);
  if (!expected) return fail(expected.error());
  return equal_constant_time(*response, expected->view());
}

}  // namespace

bool ChapKeys::take(Key key, std::string_view value) {
  switch (key) {
    case Key::chap_a: algorithms = value; return true;
    case Key::chap_i: identifier = value; return true;
    case Key::chap_c: challenge = value; return true;
    case Key::chap_n: name = value; return true;
    case Key::chap_r: response = value; return true;
    default: return false;
  }
}

// --- target ---

ChapTarget::ChapTarget(ChapCredentials initiator, std::optional<ChapCredentials> mutual,
                       std::vector<ChapAlgorithm> algorithms, FillRandom fill_random)
    : initiator_(std::move(initiator)),
      mutual_(std::move(mutual)),
      algorithms_(std::move(algorithms)),
      fill_random_(std::move(fill_random)) {}

Status ChapTarget::receive(const ChapKeys& keys, TextBuilder& answers) {
  switch (state_) {
    case State::expecting_algorithms: return choose(keys, answers);
    case State::expecting_response: return verify(keys, answers);
    case State::done: return refused("the initiator repeats CHAP keys after its response");
  }
  return refused("CHAP is in no state");
}

Status ChapTarget::choose(const ChapKeys& keys, TextBuilder& answers) {
  if (!keys.algorithms) return refused("the initiator sends CHAP keys before CHAP_A");
  if (keys.identifier || keys.challenge || keys.name || keys.response) {
    return refused("the initiator sends other CHAP keys together with CHAP_A");
  }
  if (initiator_.secret.empty()) return refused("there is no CHAP secret for this initiator");
  std::string_view list = *keys.algorithms;
  std::optional<ChapAlgorithm> chosen;
  while (const auto item = next_list_item(list)) {
    const auto number = parse_number(*item);
    if (!is_known(algorithms_, number)) continue;
    chosen = chap_algorithm(*number);
    break;
  }
  if (!chosen) {
    return refused("none of the initiator's CHAP algorithms \"{}\" is allowed here",
                   printable(*keys.algorithms));
  }
  algorithm_ = *chosen;
  Status fresh = fresh_challenge(fill_random_, algorithm_, {}, 0, identifier_, challenge_);
  if (!fresh) return fresh;
  answers.add("CHAP_A", static_cast<uint64_t>(algorithm_));
  answers.add("CHAP_I", uint64_t{identifier_});
  answers.add("CHAP_C", encode_hex(challenge_));
  state_ = State::expecting_response;
  return {};
}

Status ChapTarget::verify(const ChapKeys& keys, TextBuilder& answers) {
  if (keys.algorithms) return refused("the initiator repeats CHAP_A");
  if (!keys.name || !keys.response) return refused("the initiator sends no CHAP_N and CHAP_R");
  if (keys.name->size() > chap_name_bytes_max) return refused("CHAP_N is too long");
  const auto right = proves(*keys.response, algorithm_, identifier_, initiator_.secret, challenge_);
  if (!right) return fail(right.error());
  if (*keys.name != initiator_.user) {
    return refused("CHAP user \"{}\" is not the one of this initiator", printable(*keys.name));
  }
  if (!*right) {
    return refused("wrong CHAP response of user \"{}\": the secrets differ", printable(*keys.name));
  }
  if (keys.identifier || keys.challenge) {
    Status proved = prove(keys, answers);
    if (!proved) return proved;
  }
  state_ = State::done;
  return {};
}

Status ChapTarget::prove(const ChapKeys& keys, TextBuilder& answers) {
  if (!keys.identifier || !keys.challenge) {
    return refused("the initiator sends one of CHAP_I and CHAP_C only");
  }
  if (!mutual_ || mutual_->secret.empty() || !is_chap_name(mutual_->user)) {
    return refused("the initiator asks for mutual CHAP, but no mutual secret is set here");
  }
  if (mutual_->secret.same_as(initiator_.secret)) {
    return refused("the CHAP secrets of both directions are the same (RFC 7143 section 9.2.1)");
  }
  const auto identifier = parse_identifier(*keys.identifier);
  if (!identifier) return fail(identifier.error());
  const auto challenge = parse_bytes("CHAP_C", *keys.challenge, chap_challenge_bytes_max);
  if (!challenge) return fail(challenge.error());
  if (equal_constant_time(*challenge, challenge_)) {
    return refused("the initiator reflects our CHAP challenge");
  }
  const auto response = chap_response(algorithm_, *identifier, mutual_->secret, *challenge);
  if (!response) return fail(response.error());
  answers.add("CHAP_N", mutual_->user);
  answers.add("CHAP_R", encode_hex(response->view()));
  return {};
}

// --- initiator ---

ChapInitiator::ChapInitiator(ChapCredentials ours, std::optional<ChapCredentials> mutual,
                             std::vector<ChapAlgorithm> algorithms, FillRandom fill_random)
    : ours_(std::move(ours)),
      mutual_(std::move(mutual)),
      algorithms_(std::move(algorithms)),
      fill_random_(std::move(fill_random)) {}

void ChapInitiator::begin(TextBuilder& out) {
  std::string list;
  for (const ChapAlgorithm algorithm : algorithms_) {
    if (!list.empty()) list += ',';
    list += std::to_string(static_cast<unsigned>(algorithm));
  }
  out.add("CHAP_A", list);
}

Status ChapInitiator::receive(const ChapKeys& keys, TextBuilder& out) {
  switch (state_) {
    case State::expecting_challenge: return respond(keys, out);
    case State::expecting_proof: return verify(keys);
    case State::done: return refused("the target sends CHAP keys after the end of CHAP");
  }
  return refused("CHAP is in no state");
}

Status ChapInitiator::respond(const ChapKeys& keys, TextBuilder& out) {
  if (!keys.algorithms || !keys.identifier || !keys.challenge) {
    return refused("the target sends no CHAP_A, CHAP_I and CHAP_C");
  }
  if (keys.name || keys.response) return refused("the target sends CHAP_N or CHAP_R too early");
  const auto number = parse_number(*keys.algorithms);
  if (!is_known(algorithms_, number)) {
    return refused("the target chose CHAP algorithm \"{}\", which was not offered",
                   printable(*keys.algorithms));
  }
  algorithm_ = *chap_algorithm(*number);
  const auto identifier = parse_identifier(*keys.identifier);
  if (!identifier) return fail(identifier.error());
  const auto challenge = parse_bytes("CHAP_C", *keys.challenge, chap_challenge_bytes_max);
  if (!challenge) return fail(challenge.error());
  auto response = chap_response(algorithm_, *identifier, ours_.secret, *challenge);
  if (!response) return fail(response.error());
  our_response_ = *response;
  out.add("CHAP_N", ours_.user);
  out.add("CHAP_R", encode_hex(our_response_.view()));
  if (!mutual_) {
    state_ = State::done;
    return {};
  }
  Status fresh =
      fresh_challenge(fill_random_, algorithm_, *challenge, *identifier, identifier_, challenge_);
  if (!fresh) return fresh;
  out.add("CHAP_I", uint64_t{identifier_});
  out.add("CHAP_C", encode_hex(challenge_));
  state_ = State::expecting_proof;
  return {};
}

Status ChapInitiator::verify(const ChapKeys& keys) {
  if (keys.algorithms || keys.identifier || keys.challenge) {
    return refused("the target begins CHAP again instead of proving itself");
  }
  if (!keys.name || !keys.response) return refused("the target sends no CHAP_N and CHAP_R");
  if (keys.name->size() > chap_name_bytes_max) return refused("CHAP_N is too long");
  const auto reflected = parse_bytes("CHAP_R", *keys.response, chap_digest_bytes_max);
  if (reflected && equal_constant_time(*reflected, our_response_.view())) {
    return refused("the target reflects our own CHAP response");
  }
  const auto right = proves(*keys.response, algorithm_, identifier_, mutual_->secret, challenge_);
  if (!right) return fail(right.error());
  if (!mutual_->user.empty() && *keys.name != mutual_->user) {
    return refused("the target calls itself CHAP user \"{}\", which is not the one set here",
                   printable(*keys.name));
  }
  if (!*right) {
    return refused(
        "the target's mutual CHAP response is wrong: it is not the one it claims to "
        "be, or the mutual secrets differ");
  }
  state_ = State::done;
  return {};
}

}  // namespace vjbod::iscsi
