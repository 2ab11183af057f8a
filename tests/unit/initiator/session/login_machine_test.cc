// SPDX-License-Identifier: Apache-2.0
#include "initiator/session/login_machine.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "common/base/random.h"
#include "common/iscsi/binary_value.h"
#include "common/iscsi/errc.h"
#include "common/iscsi/text.h"

namespace vjbod::initiator {
namespace {

using iscsi::Errc;
using iscsi::LoginResponse;
using iscsi::LoginStatus;
using iscsi::LoginVerdict;
using iscsi::Stage;

constexpr std::string_view host_secret = "secret of the host";
constexpr std::string_view box_secret = "secret of the box 2";

// "A=1 B=2" as text of a PDU, and back.
std::string text(std::string_view pairs) {
  std::string bytes(pairs);
  std::replace(bytes.begin(), bytes.end(), ' ', '\0');
  if (!bytes.empty()) bytes += '\0';
  return bytes;
}
std::string readable(std::string bytes) {
  std::replace(bytes.begin(), bytes.end(), '\0', ' ');
  if (!bytes.empty()) bytes.pop_back();
  return bytes;
}

constexpr iscsi::Isid isid = {std::byte{0x40}, std::byte{1}, std::byte{2}, std::byte{3}};

LoginResponse in(Stage stage) {
  LoginResponse response;
  response.current_stage = stage;
  response.isid = isid;
  response.itt = 5;
  response.stat_sn = SerialNumber(700);
  response.exp_cmd_sn = SerialNumber(10);
  response.max_cmd_sn = SerialNumber(41);
  return response;
}
LoginResponse going(Stage from, Stage to) {
  LoginResponse response = in(from);
  response.transit = true;
  response.next_stage = to;
  return response;
}
const LoginResponse security = in(Stage::security);
const LoginResponse security_done = going(Stage::security, Stage::operational);
const LoginResponse operational = in(Stage::operational);
const LoginResponse operational_done = [] {
  LoginResponse response = going(Stage::operational, Stage::full_feature);
  response.tsih = 8;
  return response;
}();

class InitiatorLogin : public testing::Test {
 protected:
  static LoginSettings plain() {
    LoginSettings settings;
    settings.initiator_name = "iqn.2024-01.com.example:host";
    settings.target_name = "iqn.2024-01.com.example:box";
    settings.isid = isid;
    settings.itt = 5;
    settings.cmd_sn = SerialNumber(10);
    settings.fill_random = [random = Random(4)](Bytes bytes) mutable { random.fill(bytes); };
    return settings;
  }
  void use_chap(bool mutual) {
    settings_.chap = iscsi::ChapCredentials{"host", iscsi::Secret(host_secret)};
    if (mutual) settings_.mutual = iscsi::ChapCredentials{"box", iscsi::Secret(box_secret)};
  }
  LoginStep start() {
    machine_.emplace(std::exchange(settings_, plain()));
    return machine_->start();
  }
  LoginStep answer(const LoginResponse& response, std::string_view pairs = "") {
    return machine_->on_response(response, as_bytes(std::string_view(text(pairs))));
  }
  void expect_failed(const LoginStep& step, std::error_code code, LoginVerdict verdict) {
    EXPECT_EQ(step.state, LoginState::failed);
    EXPECT_FALSE(step.request);
    ASSERT_EQ(machine_->state(), LoginState::failed);
    EXPECT_EQ(machine_->failure().error.code, code) << machine_->failure().error.text;
    EXPECT_EQ(machine_->failure().verdict, verdict) << machine_->failure().error.text;
    EXPECT_FALSE(machine_->failure().error.text.empty());
  }
  // Up to and with our response to the target's challenge.
  LoginStep challenged() {
    start();
    answer(security, "AuthMethod=CHAP TargetPortalGroupTag=1");
    return answer(security, "CHAP_A=7 CHAP_I=33 CHAP_C=0x000102030405060708090a0b0c0d0e0f");
  }
  // The target's right proof to what that response asks.
  static std::string proof_for(const LoginStep& asked) {
    const auto pairs = iscsi::split_text(as_bytes(std::string_view(asked.data))).value();
    uint64_t identifier = 0;
    std::vector<std::byte> challenge;
    for (const auto& pair : pairs) {
      if (pair.key == "CHAP_I") identifier = *iscsi::parse_number(pair.value);
      if (pair.key == "CHAP_C") challenge = iscsi::decode_binary_value(pair.value, 64).value();
    }
    const auto proof =
        iscsi::chap_response(iscsi::ChapAlgorithm::sha256, static_cast<uint8_t>(identifier),
                             iscsi::Secret(box_secret), challenge)
            .value();
    return "CHAP_N=box CHAP_R=" + iscsi::encode_hex(proof.view());
  }

  LoginSettings settings_ = plain();  // of the next start()
  std::optional<LoginMachine> machine_;
};

// --- logins that work ---

TEST_F(InitiatorLogin, BeginsWithWhoItIsAndWhatItWants) {
  settings_.initiator_alias = "vjbod";
  const LoginStep step = start();
  ASSERT_TRUE(step.request);
  EXPECT_EQ(readable(step.data),
            "InitiatorName=iqn.2024-01.com.example:host InitiatorAlias=vjbod SessionType=Normal "
            "TargetName=iqn.2024-01.com.example:box AuthMethod=None");
  EXPECT_TRUE(step.request->transit);
  EXPECT_EQ(step.request->current_stage, Stage::security);
  EXPECT_EQ(step.request->next_stage, Stage::operational);
  EXPECT_EQ(step.request->isid, isid);
  EXPECT_EQ(step.request->tsih, 0);
  EXPECT_EQ(step.request->itt, 5U);
  EXPECT_EQ(step.request->cmd_sn, SerialNumber(10));
}

TEST_F(InitiatorLogin, LogsInWithoutAuthentication) {
  start();
  LoginStep step = answer(security_done, "AuthMethod=None TargetPortalGroupTag=3 TargetAlias=disk");
  ASSERT_TRUE(step.request);
  EXPECT_TRUE(step.request->transit);
  EXPECT_EQ(step.request->next_stage, Stage::full_feature);
  EXPECT_EQ(step.request->exp_stat_sn, SerialNumber(701));
  EXPECT_NE(step.data.find("InitialR2T=Yes"), std::string::npos);
  step = answer(operational_done, "ImmediateData=No MaxRecvDataSegmentLength=65536");
  EXPECT_EQ(step.state, LoginState::done);
  EXPECT_FALSE(step.request);
  const LoginResult& result = machine_->result();
  EXPECT_EQ(result.tsih, 8);
  EXPECT_EQ(result.target_alias, "disk");
  EXPECT_EQ(result.parameters.target_portal_group_tag, 3);
  EXPECT_EQ(result.parameters.peer_max_recv_data_segment_length, 65536U);
  EXPECT_FALSE(result.parameters.immediate_data);
  EXPECT_FALSE(result.target_authenticated);
  EXPECT_EQ(result.cmd_sn, SerialNumber(10));
  EXPECT_EQ(result.exp_stat_sn, SerialNumber(701));
  EXPECT_EQ(result.max_cmd_sn, SerialNumber(41));
}

TEST_F(InitiatorLogin, AsksForADiscoverySessionWithoutATarget) {
  settings_.target_name.clear();
  EXPECT_NE(readable(start().data).find("SessionType=Discovery AuthMethod=None"),
            std::string::npos);
  const LoginStep step = answer(security_done, "AuthMethod=None");
  EXPECT_EQ(readable(step.data),
            "HeaderDigest=None DataDigest=None MaxRecvDataSegmentLength=262144");
  EXPECT_EQ(answer(going(Stage::operational, Stage::full_feature)).state, LoginState::done);
  EXPECT_TRUE(machine_->result().parameters.discovery);
}

TEST_F(InitiatorLogin, GoesOnUntilTheTargetIsReady) {
  start();
  // The target wants another round in each stage, and offers a key.
  LoginStep step = answer(security, "AuthMethod=None");
  EXPECT_EQ(step.data, "");
  EXPECT_TRUE(step.request->transit);
  answer(security_done);
  step = answer(operational, "TaskReporting=RFC3720 X-com.example=1");
  EXPECT_EQ(readable(step.data), "X-com.example=NotUnderstood TaskReporting=RFC3720");
  EXPECT_TRUE(step.request->transit);
  EXPECT_EQ(answer(operational_done).state, LoginState::done);
}

TEST_F(InitiatorLogin, JoinsTextOverSeveralResponses) {
  start();
  answer(security_done);
  LoginResponse part = operational;
  part.continues = true;
  LoginStep step = machine_->on_response(part, as_bytes("MaxRecvDataSegme"));
  EXPECT_EQ(step.state, LoginState::in_progress);
  EXPECT_EQ(step.data, "");
  EXPECT_FALSE(step.request->continues);
  const std::string rest = text("ntLength=4096");
  step = machine_->on_response(operational_done, as_bytes(std::string_view(rest)));
  ASSERT_EQ(step.state, LoginState::done);
  EXPECT_EQ(machine_->result().parameters.peer_max_recv_data_segment_length, 4096U);
}

TEST_F(InitiatorLogin, CutsLongAnswersIntoSeveralRequests) {
  start();
  answer(security_done);
  std::string pairs;
  for (int i = 0; i < 140; ++i) {
    pairs += (i == 0 ? "" : " ") + std::string(50, 'K') + std::to_string(i) + "=";
  }
  LoginStep step = answer(operational, pairs);
  ASSERT_TRUE(step.request) << machine_->failure().error.text;
  EXPECT_TRUE(step.request->continues);
  EXPECT_FALSE(step.request->transit);
  EXPECT_EQ(step.data.size(), 8192U);
  step = answer(operational);
  EXPECT_FALSE(step.request->continues);
  EXPECT_TRUE(step.request->transit);
  EXPECT_EQ(answer(operational_done).state, LoginState::done);
}

TEST_F(InitiatorLogin, OffersNothingBeyondTheTransport) {
  settings_.capabilities.digests = false;
  settings_.capabilities.max_recv_data_segment_length = 8192;
  settings_.wishes.header_digest = iscsi::DigestWish::prefer;
  settings_.wishes.initial_r2t = false;
  start();
  const std::string offers = readable(answer(security_done).data);
  EXPECT_NE(offers.find("HeaderDigest=None "), std::string::npos);
  EXPECT_NE(offers.find("InitialR2T=Yes"), std::string::npos);
  EXPECT_NE(offers.find("MaxRecvDataSegmentLength=8192"), std::string::npos);
  EXPECT_EQ(offers.find("RDMAExtensions"), std::string::npos);
}

TEST_F(InitiatorLogin, ToleratesAnOfferInTheLastResponseThatItAgreesWith) {
  start();
  answer(security_done);
  EXPECT_EQ(answer(operational_done, "TaskReporting=RFC3720 X-com.example=1").state,
            LoginState::done);
}

// --- CHAP ---

TEST_F(InitiatorLogin, ProvesItsSecret) {
  use_chap(false);
  LoginStep step = start();
  EXPECT_NE(step.data.find("AuthMethod=CHAP,None"), std::string::npos);
  EXPECT_FALSE(step.request->transit);
  step = answer(security, "AuthMethod=CHAP");
  EXPECT_EQ(readable(step.data), "CHAP_A=7,8,6,5");
  EXPECT_FALSE(step.request->transit);
  step = answer(security, "CHAP_A=5 CHAP_I=39 CHAP_C=0x000102030405060708090a0b0c0d0e0f");
  EXPECT_TRUE(step.request->transit);
  EXPECT_TRUE(readable(step.data).starts_with("CHAP_N=host CHAP_R=0x"));
  answer(security_done);
  EXPECT_EQ(answer(operational_done).state, LoginState::done);
  EXPECT_FALSE(machine_->result().target_authenticated);
}

TEST_F(InitiatorLogin, TakesATargetThatNeedsNoProof) {
  use_chap(false);
  start();
  EXPECT_TRUE(answer(security, "AuthMethod=None").request->transit);
  answer(security_done);
  EXPECT_EQ(answer(operational_done).state, LoginState::done);
}

TEST_F(InitiatorLogin, AuthenticatesTheTarget) {
  use_chap(true);
  const LoginStep asked = challenged();
  ASSERT_TRUE(asked.request) << machine_->failure().error.text;
  EXPECT_TRUE(asked.request->transit);
  answer(security_done, proof_for(asked));
  EXPECT_EQ(answer(operational_done).state, LoginState::done);
  EXPECT_TRUE(machine_->result().target_authenticated);
}

TEST_F(InitiatorLogin, TakesTheProofBeforeTheTransition) {
  use_chap(true);
  const LoginStep asked = challenged();
  EXPECT_TRUE(answer(security, proof_for(asked)).request->transit);
  answer(security_done);
  EXPECT_EQ(answer(operational_done).state, LoginState::done);
}

TEST_F(InitiatorLogin, OffersMd5AloneToOldTargets) {
  use_chap(false);
  settings_.chap_algorithms = {iscsi::chap_algorithms_md5_only.begin(),
                               iscsi::chap_algorithms_md5_only.end()};
  start();
  EXPECT_EQ(readable(answer(security, "AuthMethod=CHAP").data), "CHAP_A=5");
}

TEST_F(InitiatorLogin, RefusesATargetThatSkipsItsProof) {
  use_chap(true);
  challenged();
  expect_failed(answer(security_done), Errc::authentication, LoginVerdict::permanent);
}

TEST_F(InitiatorLogin, RefusesATargetThatPutsItsProofOffForever) {
  use_chap(true);
  challenged();
  LoginStep step;
  for (int i = 0; i < 100 && machine_->state() == LoginState::in_progress; ++i) {
    step = answer(security);
  }
  expect_failed(step, Errc::protocol, LoginVerdict::retry);
}

TEST_F(InitiatorLogin, RefusesATargetThatSkipsChapWhenItMustProveItself) {
  use_chap(true);
  EXPECT_NE(start().data.find("AuthMethod=CHAP\0", 0, 16), std::string::npos);
  expect_failed(answer(security, "AuthMethod=None"), Errc::authentication, LoginVerdict::permanent);
}

TEST_F(InitiatorLogin, RefusesATargetThatLeavesTheSecurityStageUnasked) {
  use_chap(true);
  start();
  expect_failed(answer(security_done, "AuthMethod=CHAP"), Errc::protocol, LoginVerdict::retry);
}

TEST_F(InitiatorLogin, RefusesAWrongProof) {
  use_chap(true);
  std::string proof = proof_for(challenged());
  proof.back() = proof.back() == '0' ? '1' : '0';
  expect_failed(answer(security_done, proof), Errc::authentication, LoginVerdict::permanent);
}

TEST_F(InitiatorLogin, RefusesItsOwnResponseAsAProof) {
  use_chap(true);
  const std::string ours = readable(challenged().data);
  const std::string response = ours.substr(ours.find("CHAP_R="), 7 + 2 + 64);
  expect_failed(answer(security_done, "CHAP_N=box " + response), Errc::authentication,
                LoginVerdict::permanent);
  EXPECT_NE(machine_->failure().error.text.find("reflects"), std::string::npos);
}

TEST_F(InitiatorLogin, RefusesAnAlgorithmThatWasNotOffered) {
  use_chap(false);
  settings_.chap_algorithms = {iscsi::ChapAlgorithm::sha256};
  start();
  answer(security, "AuthMethod=CHAP");
  expect_failed(answer(security, "CHAP_A=5 CHAP_I=1 CHAP_C=0x0011"), Errc::authentication,
                LoginVerdict::permanent);
}

TEST_F(InitiatorLogin, RefusesAnAuthMethodThatWasNotOffered) {
  for (const char* method : {"CHAP", "KRB5", "Reject", "NotUnderstood", ""}) {
    start();
    expect_failed(answer(security, std::string("AuthMethod=") + method), Errc::authentication,
                  LoginVerdict::permanent);
  }
}

TEST_F(InitiatorLogin, RefusesChapKeysOutOfPlace) {
  start();
  expect_failed(answer(security, "CHAP_A=5 CHAP_I=1 CHAP_C=0x0011"), Errc::authentication,
                LoginVerdict::permanent);
  start();
  answer(security_done);
  expect_failed(answer(operational, "CHAP_N=box"), Errc::authentication, LoginVerdict::permanent);
}

TEST_F(InitiatorLogin, RefusesSettingsThatContradictThemselves) {
  const auto refuses = [&](auto change) {
    change();
    const LoginStep step = start();
    expect_failed(step, Errc::login_refused, LoginVerdict::permanent);
    EXPECT_EQ(machine_->failure().error.text.find(host_secret), std::string::npos);
  };
  refuses([&] {
    use_chap(true);
    settings_.mutual->secret = iscsi::Secret(host_secret);
  });
  refuses([&] { settings_.mutual = iscsi::ChapCredentials{"box", iscsi::Secret(box_secret)}; });
  refuses([&] { settings_.chap = iscsi::ChapCredentials{"host", iscsi::Secret()}; });
  refuses([&] {
    use_chap(false);
    settings_.chap_algorithms.clear();
  });
  refuses([&] {
    settings_.capabilities.digests = false;
    settings_.wishes.data_digest = iscsi::DigestWish::require;
  });
  refuses([&] {
    use_chap(false);
    settings_.chap->user = "a\nb";
  });
  refuses([&] { settings_.initiator_name.clear(); });
  refuses([&] { settings_.target_name = "../box"; });
  refuses([&] { settings_.initiator_alias = std::string(256, 'a'); });
}

// --- refusals by the target ---

TEST_F(InitiatorLogin, DecodesTheStatusIntoASentence) {
  struct Case {
    LoginStatus status;
    LoginVerdict verdict;
    Errc code;
    const char* sentence;
  };
  for (const auto& [status, verdict, code, sentence] : std::initializer_list<Case>{
           {LoginStatus::authentication_failure, LoginVerdict::permanent, Errc::authentication,
            "login status 0x0201, authentication failure"},
           {LoginStatus::authorization_failure, LoginVerdict::permanent, Errc::not_allowed,
            "login status 0x0202, authorization failure: this initiator may not use this target"},
           {LoginStatus::initiator_error, LoginVerdict::retry, Errc::login_refused,
            "login status 0x0200, initiator error"},
           {LoginStatus::not_found, LoginVerdict::permanent, Errc::target_not_found,
            "login status 0x0203, target not found, or not for this initiator"},
           {LoginStatus::service_unavailable, LoginVerdict::retry, Errc::login_refused,
            "login status 0x0301, service unavailable"},
           {LoginStatus::out_of_resources, LoginVerdict::retry, Errc::login_refused,
            "login status 0x0302, target out of resources"}}) {
    start();
    LoginResponse response = security;
    response.status_class = iscsi::status_class(status);
    response.status_detail = iscsi::status_detail(status);
    expect_failed(answer(response), code, verdict);
    EXPECT_EQ(machine_->failure().error.text, sentence);
    EXPECT_EQ(machine_->failure().status, status);
    EXPECT_FALSE(machine_->failure().at_chap);
  }
}

TEST_F(InitiatorLogin, TakesAnyRefusalOfOurProofForWhatItIs) {
  for (LoginStatus status : {LoginStatus::initiator_error, LoginStatus::authentication_failure}) {
    use_chap(false);
    challenged();
    LoginResponse response = security;
    response.status_class = iscsi::status_class(status);
    response.status_detail = iscsi::status_detail(status);

    expect_failed(answer(response), Errc::authentication, LoginVerdict::permanent);

    EXPECT_TRUE(machine_->failure().at_chap);
  }
}

TEST_F(InitiatorLogin, AWrongProofOfTheTargetIsNoMatterOfAlgorithms) {
  use_chap(true);
  std::string proof = proof_for(challenged());
  proof.back() = proof.back() == '0' ? '1' : '0';

  answer(security_done, proof);

  EXPECT_FALSE(machine_->failure().at_chap);
}

TEST_F(InitiatorLogin, FollowsARedirection) {
  start();
  LoginResponse response = security;
  response.status_class = 1;
  response.status_detail = 2;
  expect_failed(answer(response, "TargetAddress=[2001:db8::1]:3261,7"), Errc::login_refused,
                LoginVerdict::redirect);
  EXPECT_EQ(machine_->failure().redirect_address, "[2001:db8::1]:3261");
  EXPECT_TRUE(machine_->failure().redirect_permanent);
}

TEST_F(InitiatorLogin, RetriesWhenARedirectionLeadsNowhere) {
  for (const std::string& pairs :
       {std::string(), std::string("TargetAddress="), std::string("TargetAddress=\x1b[0m"),
        "TargetAddress=" + std::string(256, 'a')}) {
    start();
    LoginResponse response = security;
    response.status_class = 1;
    response.status_detail = 1;
    expect_failed(answer(response, pairs), Errc::login_refused, LoginVerdict::retry);
    EXPECT_EQ(machine_->failure().redirect_address, "");
  }
}

// --- targets that break the rules ---

TEST_F(InitiatorLogin, RefusesBrokenHeaders) {
  const auto changed = [](auto change) {
    LoginResponse response = security_done;
    change(response);
    return response;
  };
  for (const LoginResponse& response : {changed([](LoginResponse& r) { r.itt = 6; }),
                                        changed([](LoginResponse& r) { r.isid[5] = std::byte{1}; }),
                                        changed([](LoginResponse& r) { r.continues = true; })}) {
    start();
    expect_failed(answer(response), Errc::protocol, LoginVerdict::retry);
  }
  for (const LoginResponse& response :
       {operational_done, going(Stage::security, Stage::full_feature),
        going(Stage::security, Stage::security), in(Stage::full_feature)}) {
    start();
    expect_failed(answer(response), Errc::bad_stage, LoginVerdict::retry);
  }
}

TEST_F(InitiatorLogin, RefusesAnUnknownVersion) {
  start();
  LoginResponse response = security_done;
  response.version_active = 1;
  expect_failed(answer(response), Errc::protocol, LoginVerdict::permanent);
}

TEST_F(InitiatorLogin, RefusesASessionWithoutAHandle) {
  start();
  answer(security_done);
  expect_failed(answer(going(Stage::operational, Stage::full_feature)), Errc::protocol,
                LoginVerdict::retry);
}

TEST_F(InitiatorLogin, RefusesAnyOtherPdu) {
  start();
  expect_failed(machine_->on_other_pdu(), Errc::protocol, LoginVerdict::retry);
}

TEST_F(InitiatorLogin, RefusesTextThatNeverEnds) {
  start();
  LoginResponse part = security;
  part.continues = true;
  const std::string piece(8192, 'x');
  LoginStep step;
  for (int i = 0; i < 9 && machine_->state() == LoginState::in_progress; ++i) {
    step = machine_->on_response(part, as_bytes(std::string_view(piece)));
  }
  expect_failed(step, Errc::text_too_long, LoginVerdict::retry);
}

TEST_F(InitiatorLogin, RefusesASegmentBeyondTheLoginsLimit) {
  start();
  const std::string data = text("X=" + std::string(8192, 'x'));
  expect_failed(machine_->on_response(security_done, as_bytes(std::string_view(data))),
                Errc::protocol, LoginVerdict::retry);
}

TEST_F(InitiatorLogin, RefusesKeysOfTheOtherEnd) {
  for (const char* pair : {"InitiatorName=iqn.2024-01.com.example:x", "SendTargets=All",
                           "TargetName=iqn.2024-01.com.example:x", "SessionType=Normal"}) {
    start();
    expect_failed(answer(security_done, pair), Errc::protocol, LoginVerdict::retry);
  }
}

TEST_F(InitiatorLogin, RefusesAPortalGroupTagThatIsNone) {
  for (const char* tag : {"65536", "-1", "", "one"}) {
    start();
    expect_failed(answer(security_done, std::string("TargetPortalGroupTag=") + tag),
                  Errc::bad_value, LoginVerdict::retry);
  }
}

TEST_F(InitiatorLogin, RefusesAnAnswerThatItsOfferDoesNotAllow) {
  start();
  answer(security_done);
  expect_failed(answer(operational_done, "MaxBurstLength=16776192"), Errc::negotiation,
                LoginVerdict::permanent);
}

TEST_F(InitiatorLogin, RefusesAnOfferThatCannotBeAnsweredAnyMore) {
  start();
  answer(security_done);
  expect_failed(answer(operational_done, "TaskReporting=FastAbort,RFC3720"), Errc::negotiation,
                LoginVerdict::permanent);
}

TEST_F(InitiatorLogin, RefusesASessionWithoutTheDigestItRequires) {
  settings_.wishes.header_digest = iscsi::DigestWish::require;
  start();
  answer(security_done);
  expect_failed(answer(operational_done, "HeaderDigest=Reject"), Errc::negotiation,
                LoginVerdict::permanent);
}

TEST_F(InitiatorLogin, IsDeafAfterItsEnd) {
  start();
  machine_->on_other_pdu();
  EXPECT_EQ(answer(security_done).state, LoginState::failed);
  EXPECT_FALSE(answer(security_done).request);
}

}  // namespace
}  // namespace vjbod::initiator
