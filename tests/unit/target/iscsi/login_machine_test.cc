// SPDX-License-Identifier: Apache-2.0
#include "target/iscsi/login_machine.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "common/base/random.h"
#include "common/iscsi/binary_value.h"
#include "common/iscsi/errc.h"
#include "common/iscsi/pdu_codec.h"
#include "common/iscsi/text.h"

namespace vjbod::target {
namespace {

using iscsi::Errc;
using iscsi::LoginRequest;
using iscsi::LoginStatus;
using iscsi::Stage;

constexpr std::string_view host_name = "iqn.2024-01.com.example:host";
constexpr std::string_view box_name = "iqn.2024-01.com.example:box";
constexpr std::string_view host_secret = "secret of the host";
constexpr std::string_view box_secret = "secret of the box 2";

class Policy final : public LoginPolicy {
 public:
  LoginDecision decide(const LoginIdentity& identity) const override {
    asked_for = std::string(identity.initiator_name) + " " + std::string(identity.target_name) +
                (identity.discovery ? " discovery" : "");
    LoginDecision decision;
    decision.access = access;
    decision.target_alias = alias;
    if (chap) {
      decision.chap.emplace();
      decision.chap->initiator = {"host", iscsi::Secret(host_secret)};
      decision.chap->mutual = iscsi::ChapCredentials{"box", iscsi::Secret(box_secret)};
      if (sha256_only) decision.chap->algorithms = {iscsi::ChapAlgorithm::sha256};
    }
    return decision;
  }

  LoginDecision::Access access = LoginDecision::Access::allowed;
  std::string alias;
  bool chap = false;
  bool sha256_only = false;
  mutable std::string asked_for;
};

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

const std::string names = "InitiatorName=" + std::string(host_name) +
                          " TargetName=" + std::string(box_name) + " SessionType=Normal";

LoginRequest in(Stage stage) {
  LoginRequest request;
  request.current_stage = stage;
  request.isid = {std::byte{0x40}, std::byte{1}, std::byte{2}, std::byte{3}};
  request.itt = 77;
  request.cmd_sn = SerialNumber(1000);
  request.exp_stat_sn = SerialNumber(500);
  return request;
}
LoginRequest going(Stage from, Stage to) {
  LoginRequest request = in(from);
  request.transit = true;
  request.next_stage = to;
  return request;
}
const LoginRequest security = in(Stage::security);
const LoginRequest security_done = going(Stage::security, Stage::operational);
const LoginRequest operational_done = going(Stage::operational, Stage::full_feature);

class LoginMachineTest : public testing::Test {
 protected:
  LoginStep send(const LoginRequest& request, std::string_view pairs) {
    return machine().on_request(request, as_bytes(std::string_view(text(pairs))));
  }
  LoginMachine& machine() {
    if (!machine_) {
      settings_.fill_random = [random = Random(3)](Bytes bytes) mutable { random.fill(bytes); };
      machine_.emplace(std::move(settings_), policy_);
    }
    return *machine_;
  }
  void expect_failed(const LoginStep& step, LoginStatus status, std::error_code code = {}) {
    EXPECT_EQ(step.state, LoginState::failed);
    EXPECT_EQ(machine().state(), LoginState::failed);
    ASSERT_TRUE(step.response);
    EXPECT_EQ(iscsi::login_status(step.response->status_class, step.response->status_detail),
              status)
        << machine().error().text;
    EXPECT_FALSE(step.response->transit);
    EXPECT_EQ(step.data, "");
    EXPECT_FALSE(machine().error().text.empty());
    if (code) {
      EXPECT_EQ(machine().error().code, code) << machine().error().text;
    }
  }
  // The answer to the initiator's CHAP challenge text, ready to be sent.
  std::string respond_to(const std::string& challenge_text, std::string_view secret = host_secret) {
    const auto pairs = iscsi::split_text(as_bytes(std::string_view(challenge_text))).value();
    uint64_t algorithm = 0, identifier = 0;
    for (const auto& pair : pairs) {
      if (pair.key == "CHAP_A") algorithm = *iscsi::parse_number(pair.value);
      if (pair.key == "CHAP_I") identifier = *iscsi::parse_number(pair.value);
      if (pair.key == "CHAP_C") challenge_ = iscsi::decode_binary_value(pair.value, 64).value();
    }
    const auto response =
        iscsi::chap_response(*iscsi::chap_algorithm(algorithm), static_cast<uint8_t>(identifier),
                             iscsi::Secret(secret), challenge_)
            .value();
    return "CHAP_N=host CHAP_R=" + iscsi::encode_hex(response.view());
  }
  // Up to and with the target's challenge.
  std::string challenged(std::string_view algorithms = "7,5") {
    policy_.chap = true;
    send(security, names + " AuthMethod=CHAP");
    return send(security, "CHAP_A=" + std::string(algorithms)).data;
  }

  Policy policy_;
  LoginSettings settings_;
  std::vector<std::byte> challenge_;
  std::optional<LoginMachine> machine_;
};

// --- logins that work ---

TEST_F(LoginMachineTest, LetsAnInitiatorInWithoutAuthentication) {
  policy_.alias = "backup";
  LoginStep step = send(security_done, names + " AuthMethod=None");
  ASSERT_EQ(step.state, LoginState::in_progress);
  EXPECT_TRUE(step.response->transit);
  EXPECT_EQ(step.response->next_stage, Stage::operational);
  EXPECT_EQ(readable(step.data), "TargetPortalGroupTag=1 TargetAlias=backup AuthMethod=None");
  EXPECT_EQ(policy_.asked_for, std::string(host_name) + " " + std::string(box_name));

  step = send(operational_done, "InitialR2T=No MaxRecvDataSegmentLength=65536");
  ASSERT_EQ(step.state, LoginState::admission_pending);
  EXPECT_FALSE(step.response) << "nothing of the final response exists before admission";
  EXPECT_EQ(machine().outcome().initiator_name, host_name);
  EXPECT_EQ(machine().outcome().target_name, box_name);
  EXPECT_EQ(machine().outcome().isid, security.isid);
  EXPECT_EQ(machine().outcome().parameters.peer_max_recv_data_segment_length, 65536U);

  step = machine().admit(42);
  ASSERT_EQ(step.state, LoginState::done);
  EXPECT_TRUE(step.response->transit);
  EXPECT_EQ(step.response->current_stage, Stage::operational);
  EXPECT_EQ(step.response->next_stage, Stage::full_feature);
  EXPECT_EQ(step.response->tsih, 42);
  EXPECT_EQ(readable(step.data), "InitialR2T=Yes MaxRecvDataSegmentLength=262144");
}

TEST_F(LoginMachineTest, NumbersItsResponses) {
  settings_.command_window = 32;
  const LoginStep first = send(security_done, names);
  EXPECT_EQ(first.response->stat_sn, SerialNumber(500));
  EXPECT_EQ(first.response->itt, 77U);
  EXPECT_EQ(first.response->exp_cmd_sn, SerialNumber(1000));
  EXPECT_EQ(first.response->max_cmd_sn, SerialNumber(1031));
  EXPECT_EQ(first.response->tsih, 0);
  send(operational_done, "");
  EXPECT_EQ(machine().admit(1).response->stat_sn, SerialNumber(501));
  EXPECT_EQ(machine().outcome().next_stat_sn, SerialNumber(502));
  EXPECT_EQ(machine().outcome().exp_cmd_sn, SerialNumber(1000));
}

TEST_F(LoginMachineTest, LetsAnInitiatorBeginInTheOperationalStage) {
  const LoginStep step = send(operational_done, names + " ImmediateData=Yes");
  EXPECT_EQ(step.state, LoginState::admission_pending);
  EXPECT_EQ(readable(machine().admit(1).data),
            "TargetPortalGroupTag=1 ImmediateData=Yes MaxRecvDataSegmentLength=262144");
}

TEST_F(LoginMachineTest, LetsAnInitiatorGoFromSecurityToFullFeature) {
  const LoginStep step =
      send(going(Stage::security, Stage::full_feature), names + " AuthMethod=None");
  EXPECT_EQ(step.state, LoginState::admission_pending);
  EXPECT_EQ(machine().admit(1).response->current_stage, Stage::security);
  EXPECT_EQ(machine().outcome().parameters.our_max_recv_data_segment_length, 8192U);
}

TEST_F(LoginMachineTest, TakesNoneFromAnyListThatHasIt) {
  for (const char* list : {"None", "CHAP,None", "None,CHAP", "KRB5,SRP,CHAP,None"}) {
    machine_.reset();
    const LoginStep step = send(security_done, names + " AuthMethod=" + list);
    EXPECT_EQ(readable(step.data), "TargetPortalGroupTag=1 AuthMethod=None") << list;
    EXPECT_TRUE(step.response->transit);
  }
}

TEST_F(LoginMachineTest, UnderstandsTheKeysOfOpenIscsi) {
  send(security_done,
       "InitiatorName=iqn.1993-08.org.debian:01:9ab InitiatorAlias=host TargetName=" +
           std::string(box_name) + " SessionType=Normal AuthMethod=None");
  const LoginStep step =
      send(operational_done,
           "HeaderDigest=None,CRC32C DataDigest=None DefaultTime2Wait=2 DefaultTime2Retain=0 "
           "IFMarker=No OFMarker=No ErrorRecoveryLevel=0 InitialR2T=No ImmediateData=Yes "
           "MaxBurstLength=16776192 FirstBurstLength=262144 MaxOutstandingR2T=1 MaxConnections=1 "
           "DataPDUInOrder=Yes DataSequenceInOrder=Yes MaxRecvDataSegmentLength=262144");
  ASSERT_EQ(step.state, LoginState::admission_pending);
  const std::string answers = readable(machine().admit(1).data);
  EXPECT_NE(answers.find("InitialR2T=Yes"), std::string::npos);
  EXPECT_EQ(answers.find("Reject"), std::string::npos) << answers;
  EXPECT_EQ(machine().outcome().initiator_alias, "host");
  EXPECT_FALSE(machine().outcome().parameters.header_digest);
}

TEST_F(LoginMachineTest, UnderstandsADiscoverySession) {
  send(security_done,
       "InitiatorName=" + std::string(host_name) + " SessionType=Discovery AuthMethod=None");
  EXPECT_EQ(policy_.asked_for, std::string(host_name) + "  discovery");
  const LoginStep step = send(operational_done, "MaxBurstLength=8192 HeaderDigest=None");
  ASSERT_EQ(step.state, LoginState::admission_pending);
  EXPECT_TRUE(machine().outcome().parameters.discovery);
  EXPECT_EQ(machine().outcome().target_name, "");
  EXPECT_EQ(readable(machine().admit(1).data),
            "HeaderDigest=None MaxBurstLength=Irrelevant MaxRecvDataSegmentLength=262144");
}

TEST_F(LoginMachineTest, ComparesNamesInLowerCase) {
  send(security_done, "InitiatorName=IQN.2024-01.com.Example:HOST TargetName=" +
                          std::string(box_name) + " AuthMethod=None");
  EXPECT_EQ(policy_.asked_for, std::string(host_name) + " " + std::string(box_name));
}

TEST_F(LoginMachineTest, AnswersUnknownKeys) {
  const LoginStep step = send(in(Stage::operational), names + " X-com.example=1 Foo=Bar");
  EXPECT_EQ(readable(step.data),
            "TargetPortalGroupTag=1 X-com.example=NotUnderstood Foo=NotUnderstood "
            "MaxRecvDataSegmentLength=262144");
}

TEST_F(LoginMachineTest, OffersNothingBeyondTheTransport) {
  settings_.capabilities.digests = false;
  settings_.capabilities.max_recv_data_segment_length = 4096;
  settings_.wishes.header_digest = iscsi::DigestWish::prefer;
  settings_.wishes.initial_r2t = false;
  send(operational_done, names + " HeaderDigest=CRC32C,None RDMAExtensions=Yes InitialR2T=No");
  EXPECT_EQ(readable(machine().admit(1).data),
            "TargetPortalGroupTag=1 HeaderDigest=None InitialR2T=Yes RDMAExtensions=No "
            "MaxRecvDataSegmentLength=4096");
}

// --- text over several PDUs ---

TEST_F(LoginMachineTest, JoinsTextOverSeveralRequests) {
  LoginRequest part = security;
  part.continues = true;
  const std::string whole = text(names + " AuthMethod=None");
  LoginStep step = machine().on_request(part, as_bytes(std::string_view(whole).substr(0, 20)));
  EXPECT_EQ(step.data, "");
  EXPECT_FALSE(step.response->transit);
  EXPECT_FALSE(step.response->continues);
  step = machine().on_request(security_done, as_bytes(std::string_view(whole).substr(20)));
  EXPECT_TRUE(step.response->transit);
  EXPECT_EQ(readable(step.data), "TargetPortalGroupTag=1 AuthMethod=None");
}

TEST_F(LoginMachineTest, CutsItsOwnTextIntoSeveralResponses) {
  std::string pairs = names;
  for (int i = 0; i < 200; ++i) pairs += " " + std::string(50, 'K') + std::to_string(i) + "=";
  // Too long for one request, and so are its answers.
  const std::string whole = text(pairs);
  LoginRequest part = in(Stage::operational);
  part.continues = true;
  machine().on_request(part, as_bytes(std::string_view(whole).substr(0, 8192)));
  LoginStep step =
      machine().on_request(operational_done, as_bytes(std::string_view(whole).substr(8192)));
  ASSERT_EQ(step.state, LoginState::in_progress);
  EXPECT_TRUE(step.response->continues);
  EXPECT_FALSE(step.response->transit);
  EXPECT_EQ(step.data.size(), 8192U);
  std::string answers = step.data;
  step = send(operational_done, "");
  ASSERT_EQ(step.state, LoginState::admission_pending) << "the last piece waits for admission";
  step = machine().admit(1);
  EXPECT_TRUE(step.response->transit);
  EXPECT_FALSE(step.response->continues);
  answers += step.data;
  EXPECT_TRUE(iscsi::split_text(as_bytes(std::string_view(answers))));
  EXPECT_NE(answers.find("K199=NotUnderstood"), std::string::npos);
}

TEST_F(LoginMachineTest, RefusesTextThatNeverEnds) {
  LoginRequest part = security;
  part.continues = true;
  const std::string piece(8192, 'x');
  LoginStep step;
  for (int i = 0; i < 9 && machine().state() == LoginState::in_progress; ++i) {
    step = machine().on_request(part, as_bytes(std::string_view(piece)));
  }
  expect_failed(step, LoginStatus::initiator_error, Errc::text_too_long);
}

TEST_F(LoginMachineTest, RefusesALoginThatNeverEnds) {
  send(security, names + " AuthMethod=None");
  LoginStep step;
  size_t requests = 1;
  for (; machine().state() == LoginState::in_progress; ++requests) step = send(security, "");
  EXPECT_EQ(requests, login_requests_max + 1);
  expect_failed(step, LoginStatus::initiator_error, Errc::protocol);
}

TEST_F(LoginMachineTest, RefusesASegmentBeyondTheLoginsLimit) {
  const std::string data = text(names + " X=" + std::string(8192, 'x'));
  expect_failed(machine().on_request(security, as_bytes(std::string_view(data))),
                LoginStatus::initiator_error);
}

// --- headers ---

TEST_F(LoginMachineTest, RefusesAVersionItDoesNotSpeak) {
  LoginRequest request = security_done;
  request.version_min = 1;
  request.version_max = 1;
  expect_failed(send(request, names), LoginStatus::unsupported_version);
}

TEST_F(LoginMachineTest, TakesAnInitiatorThatCouldDoMore) {
  LoginRequest request = security_done;
  request.version_max = 3;
  const LoginStep step = send(request, names);
  EXPECT_EQ(step.response->version_active, 0);
  EXPECT_EQ(step.response->version_max, 0);
}

TEST_F(LoginMachineTest, RefusesIllegalStages) {
  const auto reserved = static_cast<Stage>(2);
  for (const LoginRequest& request :
       {in(reserved), in(Stage::full_feature), going(Stage::security, Stage::security),
        going(Stage::security, reserved), going(Stage::operational, Stage::security),
        going(Stage::operational, Stage::operational)}) {
    machine_.reset();
    expect_failed(send(request, names), LoginStatus::initiator_error, Errc::bad_stage);
  }
}

TEST_F(LoginMachineTest, RefusesAStageThatItHasLeftOrNotReached) {
  send(security_done, names);
  expect_failed(send(security, ""), LoginStatus::initiator_error, Errc::bad_stage);
  machine_.reset();
  send(security, names);
  expect_failed(send(operational_done, ""), LoginStatus::initiator_error, Errc::bad_stage);
}

TEST_F(LoginMachineTest, RefusesTransitWithContinuation) {
  LoginRequest request = security_done;
  request.continues = true;
  expect_failed(send(request, names), LoginStatus::initiator_error);
}

TEST_F(LoginMachineTest, RefusesRequestsOfAnotherLoginInBetween) {
  const auto changed = [](auto change) {
    LoginRequest request = operational_done;
    change(request);
    return request;
  };
  for (const LoginRequest& request : {changed([](LoginRequest& r) { r.isid[5] = std::byte{9}; }),
                                      changed([](LoginRequest& r) { r.cid = 1; }),
                                      changed([](LoginRequest& r) { r.tsih = 1; })}) {
    machine_.reset();
    send(security_done, names);
    expect_failed(send(request, ""), LoginStatus::initiator_error);
  }
}

TEST_F(LoginMachineTest, AnswersAnotherPduDuringLogin) {
  send(security_done, names);
  expect_failed(machine().on_other_pdu(), LoginStatus::invalid_during_login, Errc::protocol);
}

TEST_F(LoginMachineTest, AnswersNothingToAnotherPduBeforeLogin) {
  const LoginStep step = machine().on_other_pdu();
  EXPECT_EQ(step.state, LoginState::failed);
  EXPECT_FALSE(step.response);
}

TEST_F(LoginMachineTest, ReportsTheSessionThatAConnectionWantsToJoin) {
  LoginRequest request = operational_done;
  request.tsih = 9;
  request.cid = 4;
  ASSERT_EQ(send(request, names).state, LoginState::admission_pending);
  EXPECT_EQ(machine().outcome().tsih_requested, 9);
  EXPECT_EQ(machine().outcome().cid, 4);
  expect_failed(machine().refuse(LoginStatus::session_does_not_exist, "no session 9"),
                LoginStatus::session_does_not_exist, Errc::login_refused);
}

// --- admission ---

TEST_F(LoginMachineTest, RefusesARequestWhileItWaitsForAdmission) {
  send(operational_done, names);
  expect_failed(send(operational_done, ""), LoginStatus::initiator_error);
}

TEST_F(LoginMachineTest, IsDeafAfterItsEnd) {
  send(operational_done, names);
  machine().refuse(LoginStatus::out_of_resources, "no memory");
  const LoginStep step = send(operational_done, names);
  EXPECT_EQ(step.state, LoginState::failed);
  EXPECT_FALSE(step.response);
  EXPECT_FALSE(machine().refuse(LoginStatus::target_error, "again").response);
}

// --- keys ---

TEST_F(LoginMachineTest, NeedsTheNames) {
  expect_failed(send(security_done, "TargetName=" + std::string(box_name)),
                LoginStatus::missing_parameter);
  machine_.reset();
  expect_failed(send(security_done, "InitiatorName=" + std::string(host_name)),
                LoginStatus::missing_parameter);
  machine_.reset();
  expect_failed(send(security_done, ""), LoginStatus::missing_parameter);
}

TEST_F(LoginMachineTest, RefusesAnUnknownSessionType) {
  expect_failed(send(security_done, "InitiatorName=" + std::string(host_name) + " TargetName=" +
                                        std::string(box_name) + " SessionType=Other"),
                LoginStatus::session_type_not_supported);
}

TEST_F(LoginMachineTest, RefusesBadNamesBeforeThePolicySeesThem) {
  for (const std::string& name :
       {std::string("host"), std::string("iqn.2024-01.com.example:a\x1b[0m"),
        std::string("iqn.2024-01.com.example:../../etc"), std::string(),
        "iqn.2024-01.com.example:" + std::string(200, 'x')}) {
    machine_.reset();
    expect_failed(
        send(security_done, "InitiatorName=" + name + " TargetName=" + std::string(box_name)),
        LoginStatus::initiator_error, Errc::bad_name);
    EXPECT_EQ(machine().error().text.find('\x1b'), std::string::npos);
    EXPECT_EQ(machine().outcome().initiator_name, "");
    machine_.reset();
    expect_failed(
        send(security_done, "InitiatorName=" + std::string(host_name) + " TargetName=" + name),
        LoginStatus::initiator_error, Errc::bad_name);
  }
  EXPECT_EQ(policy_.asked_for, "");
}

TEST_F(LoginMachineTest, RefusesNamesThatChange) {
  for (const char* again : {"InitiatorName=iqn.2024-01.com.example:other",
                            "TargetName=iqn.2024-01.com.example:other", "SessionType=Discovery"}) {
    machine_.reset();
    send(security_done, names);
    expect_failed(send(operational_done, again), LoginStatus::initiator_error, Errc::protocol);
  }
}

TEST_F(LoginMachineTest, RefusesKeysThatAreNotAnInitiatorsInLogin) {
  for (const char* pair :
       {"TargetAlias=x", "TargetAddress=10.0.0.1", "TargetPortalGroupTag=1", "SendTargets=All"}) {
    machine_.reset();
    expect_failed(send(security_done, names + " " + pair), LoginStatus::initiator_error,
                  Errc::protocol);
  }
}

TEST_F(LoginMachineTest, RefusesBrokenText) {
  for (const std::string& data :
       {std::string("InitiatorName"), text(names + " InitialR2T=Yes InitialR2T=Yes"),
        text(names).substr(0, text(names).size() - 1)}) {
    machine_.reset();
    expect_failed(machine().on_request(security_done, as_bytes(std::string_view(data))),
                  LoginStatus::initiator_error, Errc::bad_text);
  }
}

TEST_F(LoginMachineTest, RefusesAnIllegalDeclaration) {
  expect_failed(send(operational_done, names + " MaxRecvDataSegmentLength=1"),
                LoginStatus::initiator_error, Errc::bad_value);
}

TEST_F(LoginMachineTest, RefusesAKeyThatIsNegotiatedAgain) {
  send(in(Stage::operational), names + " InitialR2T=Yes");
  expect_failed(send(operational_done, "InitialR2T=Yes"), LoginStatus::initiator_error,
                Errc::protocol);
}

// --- access ---

TEST_F(LoginMachineTest, SaysWhyATargetMayNotBeUsed) {
  struct Case {
    LoginDecision::Access access;
    LoginStatus status;
  };
  for (const auto& [access, status] :
       {Case{LoginDecision::Access::not_found, LoginStatus::not_found},
        Case{LoginDecision::Access::unavailable, LoginStatus::service_unavailable}}) {
    machine_.reset();
    policy_.access = access;
    expect_failed(send(security_done, names), status, Errc::login_refused);
  }
}

TEST_F(LoginMachineTest, TellsAStrangerAboutATargetWhatItTellsAboutNone) {
  policy_.access = LoginDecision::Access::forbidden;
  const LoginStep stranger = send(security_done, names);
  machine_.reset();
  policy_.access = LoginDecision::Access::not_found;
  const LoginStep nothing = send(security_done, names);

  std::array<std::byte, iscsi::bhs_bytes> of_stranger{}, of_nothing{};
  iscsi::encode_bhs(*stranger.response, 0, 0, of_stranger);
  iscsi::encode_bhs(*nothing.response, 0, 0, of_nothing);
  EXPECT_EQ(of_stranger, of_nothing);
  EXPECT_EQ(stranger.data, nothing.data);
}

TEST_F(LoginMachineTest, TellsAStrangerThatItMayNotDiscover) {
  policy_.access = LoginDecision::Access::forbidden;
  expect_failed(send(security_done, "InitiatorName=iqn.2026-11.io.vjbod:a SessionType=Discovery"),
                LoginStatus::authorization_failure, Errc::login_refused);
}

// --- CHAP ---

TEST_F(LoginMachineTest, LetsAnInitiatorInThatProvesItsSecret) {
  policy_.chap = true;
  LoginStep step = send(security, names + " AuthMethod=CHAP,None");
  EXPECT_EQ(readable(step.data), "TargetPortalGroupTag=1 AuthMethod=CHAP");
  step = send(security, "CHAP_A=7,5");
  EXPECT_FALSE(step.response->transit);
  step = send(security_done, respond_to(step.data));
  EXPECT_TRUE(step.response->transit) << machine().error().text;
  ASSERT_EQ(send(operational_done, "").state, LoginState::admission_pending);
  EXPECT_EQ(machine().outcome().authenticated_user, "host");
}

TEST_F(LoginMachineTest, ProvesItsOwnSecretWhenAsked) {
  const std::string response = respond_to(challenged());
  const LoginStep step = send(security_done, response + " CHAP_I=9 CHAP_C=0x0102030405060708");
  std::vector<std::byte> challenge(8);
  for (size_t i = 0; i < 8; ++i) challenge[i] = static_cast<std::byte>(i + 1);
  const auto proof =
      iscsi::chap_response(iscsi::ChapAlgorithm::sha256, 9, iscsi::Secret(box_secret), challenge);
  EXPECT_EQ(readable(step.data), "CHAP_N=box CHAP_R=" + iscsi::encode_hex(proof->view()));
  EXPECT_TRUE(step.response->transit);
}

TEST_F(LoginMachineTest, HoldsAnInitiatorThatWantsToGoOnTooEarly) {
  policy_.chap = true;
  EXPECT_FALSE(send(security_done, names + " AuthMethod=CHAP").response->transit);
  const LoginStep step = send(security_done, "CHAP_A=5");
  ASSERT_EQ(step.state, LoginState::in_progress);
  EXPECT_FALSE(step.response->transit);
  EXPECT_TRUE(send(security_done, respond_to(step.data)).response->transit);
}

TEST_F(LoginMachineTest, RefusesAnInitiatorThatSkipsChap) {
  policy_.chap = true;
  const auto skips = [&](const LoginRequest& request, const std::string& pairs) {
    machine_.reset();
    expect_failed(send(request, pairs), LoginStatus::authentication_failure, Errc::authentication);
  };
  skips(security_done, names);
  skips(security_done, names + " AuthMethod=None");
  skips(security_done, names + " AuthMethod=KRB5,None");
  skips(security_done, names + " AuthMethod=");
  skips(operational_done, names);
  skips(operational_done, names + " AuthMethod=None");
  skips(operational_done, names + " AuthMethod=CHAP");
  skips(in(Stage::operational), names);
  skips(going(Stage::security, Stage::full_feature), names);
}

TEST_F(LoginMachineTest, RefusesAnInitiatorThatLeavesChapHalfway) {
  challenged();
  expect_failed(send(security_done, ""), LoginStatus::authentication_failure, Errc::authentication);
  machine_.reset();
  challenged();
  expect_failed(send(going(Stage::security, Stage::full_feature), ""),
                LoginStatus::authentication_failure, Errc::authentication);
}

TEST_F(LoginMachineTest, RefusesAWrongSecret) {
  const std::string response = respond_to(challenged(), "another secret");
  expect_failed(send(security_done, response), LoginStatus::authentication_failure,
                Errc::authentication);
  EXPECT_EQ(machine().outcome().authenticated_user, "");
}

TEST_F(LoginMachineTest, RefusesAnAlgorithmThatIsNotAllowed) {
  policy_.chap = policy_.sha256_only = true;
  send(security, names + " AuthMethod=CHAP");
  expect_failed(send(security, "CHAP_A=5,6,99"), LoginStatus::authentication_failure,
                Errc::authentication);
}

TEST_F(LoginMachineTest, RefusesItsOwnChallengeReflected) {
  const std::string response = respond_to(challenged());
  expect_failed(send(security_done, response + " CHAP_I=1 CHAP_C=" + iscsi::encode_hex(challenge_)),
                LoginStatus::authentication_failure, Errc::authentication);
}

TEST_F(LoginMachineTest, RefusesAResponseThatIsRepeated) {
  const std::string response = respond_to(challenged());
  send(security, response);
  expect_failed(send(security_done, response), LoginStatus::authentication_failure,
                Errc::authentication);
}

TEST_F(LoginMachineTest, RefusesChapThatNobodyAskedFor) {
  expect_failed(send(security, names + " AuthMethod=CHAP"), LoginStatus::authentication_failure);
  machine_.reset();
  expect_failed(send(security, names + " CHAP_A=5"), LoginStatus::authentication_failure);
  machine_.reset();
  send(security_done, names + " AuthMethod=None");
  expect_failed(send(operational_done, "CHAP_A=5"), LoginStatus::authentication_failure);
}

TEST_F(LoginMachineTest, RefusesAnotherAuthMethodLater) {
  policy_.chap = true;
  send(security, names + " AuthMethod=CHAP");
  expect_failed(send(security, "AuthMethod=CHAP"), LoginStatus::initiator_error, Errc::protocol);
}

TEST_F(LoginMachineTest, NeverNamesASecretInAnError) {
  const std::string response = respond_to(challenged(), "another secret");
  send(security_done, response);
  EXPECT_EQ(machine().error().text.find(host_secret), std::string::npos);
  EXPECT_NE(machine().error().text.find("0x0201"), std::string::npos);
  EXPECT_NE(machine().error().text.find(host_name), std::string::npos);
}

}  // namespace
}  // namespace vjbod::target
