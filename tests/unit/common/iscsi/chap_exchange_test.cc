// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/chap_exchange.h"

#include <gtest/gtest.h>

#include "common/base/random.h"
#include "common/iscsi/binary_value.h"
#include "common/iscsi/errc.h"

namespace vjbod::iscsi {
namespace {

FillRandom seeded(uint64_t seed) {
  return [random = Random(seed)](Bytes bytes) mutable { random.fill(bytes); };
}

constexpr std::string_view secret_of_initiator = "initiator secret 1";
constexpr std::string_view secret_of_target = "target secret number 2";

ChapCredentials initiator_credentials() {
  return {"host", Secret(secret_of_initiator)};
}
ChapCredentials target_credentials() {
  return {"box", Secret(secret_of_target)};
}
std::vector<ChapAlgorithm> all() {
  return {chap_algorithms_by_strength.begin(), chap_algorithms_by_strength.end()};
}
ChapTarget target(bool mutual = true, std::vector<ChapAlgorithm> algorithms = all()) {
  return ChapTarget(initiator_credentials(),
                    mutual ? std::optional(target_credentials()) : std::nullopt,
                    std::move(algorithms), seeded(1));
}
ChapInitiator initiator(bool mutual = true, std::vector<ChapAlgorithm> algorithms = all()) {
  return ChapInitiator(initiator_credentials(),
                       mutual ? std::optional(target_credentials()) : std::nullopt,
                       std::move(algorithms), seeded(2));
}

// A text and its CHAP keys.
struct Text {
  explicit Text(TextBuilder& builder) : text(builder.take()) {
    const auto pairs = split_text(as_bytes(std::string_view(text)));
    for (const TextPair& pair : pairs.value()) keys.take(find_key(pair.key)->key, pair.value);
  }
  Text(const Text&) = delete;
  std::string text;
  ChapKeys keys;
};

ChapKeys keys_a(std::string_view algorithms) {
  ChapKeys keys;
  keys.algorithms = algorithms;
  return keys;
}

// The target after it has chosen `algorithm`, with its challenge, and a right response to it.
struct Challenged {
  explicit Challenged(ChapTarget chap) : target(std::move(chap)) {
    EXPECT_TRUE(target.receive(keys_a("7"), builder));
    text.emplace(builder);
    challenge = decode_binary_value(*text->keys.challenge, 1024).value();
    const auto identifier = static_cast<uint8_t>(*parse_number(*text->keys.identifier));
    response = encode_hex(
        chap_response(ChapAlgorithm::sha256, identifier, Secret(secret_of_initiator), challenge)
            ->view());
    keys.name = "host";
    keys.response = response;
  }
  std::error_code send() {
    const Status received = target.receive(keys, builder);
    return received ? std::error_code() : received.error().code;
  }
  ChapTarget target;
  TextBuilder builder;
  std::optional<Text> text;
  std::vector<std::byte> challenge;
  std::string response;
  ChapKeys keys;
};

class ChapBothEnds : public testing::TestWithParam<ChapAlgorithm> {};

TEST_P(ChapBothEnds, AuthenticateEachOther) {
  auto ours = initiator(true, {GetParam()});
  auto theirs = target();
  TextBuilder builder;
  ours.begin(builder);
  const Text list(builder);
  ASSERT_TRUE(theirs.receive(list.keys, builder));
  const Text challenge(builder);
  ASSERT_TRUE(ours.receive(challenge.keys, builder));
  EXPECT_TRUE(ours.answered());
  EXPECT_FALSE(ours.done());
  const Text response(builder);
  ASSERT_TRUE(theirs.receive(response.keys, builder));
  EXPECT_TRUE(theirs.done());
  EXPECT_EQ(theirs.authenticated_user(), "host");
  const Text proof(builder);
  ASSERT_TRUE(ours.receive(proof.keys, builder));
  EXPECT_TRUE(ours.done());
}
INSTANTIATE_TEST_SUITE_P(AllAlgorithms, ChapBothEnds,
                         testing::ValuesIn(chap_algorithms_by_strength));

TEST(ChapTarget, IsContentWithAOneWayProof) {
  Challenged chap(target(false));
  EXPECT_EQ(chap.send(), std::error_code());
  EXPECT_TRUE(chap.target.done());
  EXPECT_TRUE(chap.builder.empty());
}

TEST(ChapTarget, TakesTheFirstAllowedAlgorithmOfTheList) {
  TextBuilder builder;
  auto chap = target(true, {ChapAlgorithm::md5, ChapAlgorithm::sha1});
  ASSERT_TRUE(chap.receive(keys_a("7,nonsense,6,5"), builder));
  EXPECT_EQ(*Text(builder).keys.algorithms, "6");
}

TEST(ChapTarget, TakesAHexadecimalAlgorithmAndABase64Response) {
  Challenged chap(target());
  const auto bytes = decode_binary_value(chap.response, 64).value();
  chap.response = encode_base64(bytes);
  chap.keys.response = chap.response;
  EXPECT_EQ(chap.send(), std::error_code());
}

TEST(ChapTarget, RefusesAnAlgorithmThatIsNotAllowed) {
  for (const char* list : {"", "9", "5,6", "all", "7 ", "SHA256"}) {
    TextBuilder builder;
    auto chap = target(true, {ChapAlgorithm::sha256});
    EXPECT_EQ(chap.receive(keys_a(list), builder).error().code, Errc::authentication) << list;
  }
}

TEST(ChapTarget, RefusesAResponseWithoutAChallenge) {
  TextBuilder builder;
  auto chap = target();
  ChapKeys keys;
  keys.name = "host";
  keys.response = "0x00";
  EXPECT_EQ(chap.receive(keys, builder).error().code, Errc::authentication);
}

TEST(ChapTarget, RefusesAWrongResponse) {
  Challenged chap(target());
  chap.response.back() = chap.response.back() == '0' ? '1' : '0';
  chap.keys.response = chap.response;
  EXPECT_EQ(chap.send(), Errc::authentication);
  EXPECT_FALSE(chap.target.done());
}

TEST(ChapTarget, RefusesAResponseOfAnotherLength) {
  for (const auto& response : {std::string("0x"), std::string("0x00"), std::string(""),
                               "0x" + std::string(66, '0'), "0x" + std::string(8000, '0')}) {
    Challenged chap(target());
    chap.keys.response = response;
    EXPECT_EQ(chap.send(), Errc::authentication) << response.size();
  }
}

TEST(ChapTarget, RefusesAnotherUser) {
  for (const auto& user :
       {std::string("HOST"), std::string(""), std::string("host "), std::string(8000, 'h')}) {
    Challenged chap(target());
    chap.keys.name = user;
    EXPECT_EQ(chap.send(), Errc::authentication);
  }
}

TEST(ChapTarget, RefusesAMissingResponse) {
  Challenged chap(target());
  chap.keys.response.reset();
  EXPECT_EQ(chap.send(), Errc::authentication);
}

TEST(ChapTarget, RefusesARepeatedBeginning) {
  Challenged chap(target());
  chap.keys.algorithms = "7";
  EXPECT_EQ(chap.send(), Errc::authentication);
}

TEST(ChapTarget, RefusesARepeatedResponse) {
  Challenged chap(target());
  ASSERT_EQ(chap.send(), std::error_code());
  EXPECT_EQ(chap.send(), Errc::authentication);
}

TEST(ChapTarget, RefusesItsOwnChallengeReflected) {
  Challenged chap(target());
  chap.keys.identifier = "1";
  const std::string reflected = encode_base64(chap.challenge);
  chap.keys.challenge = reflected;
  EXPECT_EQ(chap.send(), Errc::authentication);
  EXPECT_FALSE(chap.target.done());
}

TEST(ChapTarget, RefusesMutualChapWithoutASecretForIt) {
  Challenged chap(target(false));
  chap.keys.identifier = "1";
  chap.keys.challenge = "0x00112233";
  EXPECT_EQ(chap.send(), Errc::authentication);
}

TEST(ChapTarget, RefusesOneSecretForBothDirections) {
  Challenged chap(ChapTarget(initiator_credentials(),
                             ChapCredentials{"box", Secret(secret_of_initiator)}, all(),
                             seeded(1)));
  chap.keys.identifier = "1";
  chap.keys.challenge = "0x00112233";
  EXPECT_EQ(chap.send(), Errc::authentication);
}

TEST(ChapTarget, RefusesAMalformedMutualChallenge) {
  struct Case {
    std::optional<std::string> identifier, challenge;
  };
  for (const auto& [identifier, challenge] :
       std::initializer_list<Case>{{"256", "0x00112233"},
                                   {"-1", "0x00112233"},
                                   {"", "0x00112233"},
                                   {"1", ""},
                                   {"1", "0x"},
                                   {"1", "00112233"},
                                   {"1", "0x" + std::string(2050, '0')},
                                   {"1", std::nullopt},
                                   {std::nullopt, "0x00112233"}}) {
    Challenged chap(target());
    if (identifier) chap.keys.identifier = *identifier;
    if (challenge) chap.keys.challenge = *challenge;
    EXPECT_EQ(chap.send(), Errc::authentication);
  }
}

// The initiator after it has responded to a challenge, and the target's right proof.
struct Answered {
  explicit Answered(ChapInitiator chap) : initiator(std::move(chap)) {
    ChapKeys keys;
    keys.algorithms = "7";
    keys.identifier = "0x10";
    keys.challenge = "0x000102030405060708090a0b0c0d0e0f";
    EXPECT_TRUE(initiator.receive(keys, builder));
    text.emplace(builder);
    if (!text->keys.challenge) return;
    const auto challenge = decode_binary_value(*text->keys.challenge, 1024).value();
    const auto identifier = static_cast<uint8_t>(*parse_number(*text->keys.identifier));
    response = encode_hex(
        chap_response(ChapAlgorithm::sha256, identifier, Secret(secret_of_target), challenge)
            ->view());
    proof.name = "box";
    proof.response = response;
  }
  std::error_code send() {
    const Status received = initiator.receive(proof, builder);
    return received ? std::error_code() : received.error().code;
  }
  ChapInitiator initiator;
  TextBuilder builder;
  std::optional<Text> text;
  std::string response;
  ChapKeys proof;
};

TEST(ChapInitiator, OffersItsAlgorithmsInItsOrder) {
  TextBuilder builder;
  initiator().begin(builder);
  EXPECT_EQ(*Text(builder).keys.algorithms, "7,8,6,5");
  initiator(true, {ChapAlgorithm::md5}).begin(builder);
  EXPECT_EQ(*Text(builder).keys.algorithms, "5");
}

TEST(ChapInitiator, RefusesAnAlgorithmThatWasNotOffered) {
  for (const char* algorithm : {"5", "6,7", "", "9", "x"}) {
    auto chap = initiator(true, {ChapAlgorithm::sha256, ChapAlgorithm::sha1});
    ChapKeys keys = keys_a(algorithm);
    keys.identifier = "1";
    keys.challenge = "0x00112233";
    TextBuilder builder;
    EXPECT_EQ(chap.receive(keys, builder).error().code, Errc::authentication) << algorithm;
    EXPECT_TRUE(builder.empty()) << "no response may leave";
  }
}

TEST(ChapInitiator, TakesTheRightProof) {
  Answered chap(initiator());
  EXPECT_EQ(chap.send(), std::error_code());
  EXPECT_TRUE(chap.initiator.done());
}

TEST(ChapInitiator, RefusesAWrongProof) {
  Answered chap(initiator());
  chap.response[2] = chap.response[2] == '0' ? '1' : '0';
  chap.proof.response = chap.response;
  EXPECT_EQ(chap.send(), Errc::authentication);
  EXPECT_FALSE(chap.initiator.done());
}

TEST(ChapInitiator, RefusesItsOwnResponseReflected) {
  Answered chap(initiator());
  chap.proof.response = *chap.text->keys.response;
  EXPECT_EQ(chap.send(), Errc::authentication);
}

TEST(ChapInitiator, RefusesAProofInTheNameOfAnother) {
  Answered chap(initiator());
  chap.proof.name = "other box";
  EXPECT_EQ(chap.send(), Errc::authentication);
}

TEST(ChapInitiator, RefusesASecondChallengeInsteadOfAProof) {
  Answered chap(initiator());
  chap.proof.algorithms = "7";
  chap.proof.identifier = "2";
  chap.proof.challenge = "0x0011";
  EXPECT_EQ(chap.send(), Errc::authentication);
}

TEST(ChapInitiator, AsksForNoProofOneWay) {
  Answered chap(initiator(false));
  EXPECT_TRUE(chap.initiator.done());
  EXPECT_FALSE(chap.text->keys.challenge);
  chap.proof.name = "box";
  chap.proof.response = "0x00";
  EXPECT_EQ(chap.send(), Errc::authentication) << "nothing was asked";
}

TEST(ChapInitiator, RefusesAChallengeThatIsMissingOrTooLong) {
  for (const auto& challenge : {std::string("0x"), "0x" + std::string(2050, '1')}) {
    auto chap = initiator();
    ChapKeys keys = keys_a("7");
    keys.identifier = "1";
    keys.challenge = challenge;
    TextBuilder builder;
    EXPECT_EQ(chap.receive(keys, builder).error().code, Errc::authentication);
  }
  auto chap = initiator();
  TextBuilder builder;
  EXPECT_EQ(chap.receive(keys_a("7"), builder).error().code, Errc::authentication);
}

TEST(ChapInitiator, NeverUsesTheTargetsChallengeAsItsOwn) {
  // Given a source of randomness that draws what the target drew
  auto constant = [](Bytes bytes) { std::fill(bytes.begin(), bytes.end(), std::byte{7}); };
  ChapInitiator chap(initiator_credentials(), target_credentials(), all(), constant);
  ChapKeys keys = keys_a("5");
  keys.identifier = "7";
  keys.challenge = "0x07070707070707070707070707070707";
  TextBuilder builder;
  EXPECT_EQ(chap.receive(keys, builder).error().code, Errc::authentication);
}

}  // namespace
}  // namespace vjbod::iscsi
