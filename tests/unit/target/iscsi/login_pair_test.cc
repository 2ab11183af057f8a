// SPDX-License-Identifier: Apache-2.0
// Both login machines against each other, over nothing but their own PDUs.
#include <gtest/gtest.h>

#include "common/base/random.h"
#include "common/iscsi/errc.h"
#include "initiator/session/login_machine.h"
#include "target/iscsi/login_machine.h"

namespace vjbod {
namespace {

using iscsi::DigestWish;

constexpr std::string_view host_name = "iqn.2024-01.com.example:host";
constexpr std::string_view box_name = "iqn.2024-01.com.example:box";
constexpr std::string_view host_secret = "secret of the host";
constexpr std::string_view box_secret = "secret of the box 2";

iscsi::FillRandom seeded(uint64_t seed) {
  return [random = Random(seed)](Bytes bytes) mutable { random.fill(bytes); };
}

struct Policy final : target::LoginPolicy {
  target::LoginDecision decide(const target::LoginIdentity& identity) const override {
    target::LoginDecision decision;
    if (identity.initiator_name != host_name) {
      decision.access = target::LoginDecision::Access::forbidden;
      return decision;
    }
    if (!identity.discovery && identity.target_name != box_name) return decision;
    decision.access = target::LoginDecision::Access::allowed;
    decision.target_alias = "disk";
    if (chap) {
      decision.chap.emplace();
      decision.chap->initiator = {"host", iscsi::Secret(host_secret)};
      decision.chap->mutual = iscsi::ChapCredentials{"box", iscsi::Secret(mutual_secret)};
      if (!algorithms.empty()) decision.chap->algorithms = algorithms;
    }
    return decision;
  }
  bool chap = false;
  std::string_view mutual_secret = box_secret;
  std::vector<iscsi::ChapAlgorithm> algorithms;
};

class LoginPair : public testing::Test {
 protected:
  LoginPair() {
    host_.initiator_name = host_name;
    host_.target_name = box_name;
    host_.isid = {std::byte{0x80}, std::byte{1}};
    host_.itt = 9;
    host_.cmd_sn = SerialNumber(0xffffffff);
    host_.fill_random = seeded(1);
    box_.fill_random = seeded(2);
    box_.target_portal_group_tag = 7;
  }
  void use_chap(bool mutual) {
    policy_.chap = true;
    host_.chap = iscsi::ChapCredentials{"host", iscsi::Secret(host_secret)};
    if (mutual) host_.mutual = iscsi::ChapCredentials{"box", iscsi::Secret(box_secret)};
  }
  // Until one of them has come to an end.
  void run() {
    initiator_.emplace(std::move(host_));
    target_.emplace(std::move(box_), policy_);
    initiator::LoginStep asked = initiator_->start();
    for (rounds_ = 0; asked.request; ++rounds_) {
      ASSERT_LT(rounds_, 20U);
      target::LoginStep answered =
          target_->on_request(*asked.request, as_bytes(std::string_view(asked.data)));
      if (answered.state == target::LoginState::admission_pending) answered = target_->admit(55);
      ASSERT_TRUE(answered.response);
      asked =
          initiator_->on_response(*answered.response, as_bytes(std::string_view(answered.data)));
    }
  }
  void expect_done() {
    ASSERT_EQ(initiator_->state(), initiator::LoginState::done) << initiator_->failure().error.text;
    ASSERT_EQ(target_->state(), target::LoginState::done) << target_->error().text;
  }
  const iscsi::NegotiatedParameters& at_host() { return initiator_->result().parameters; }
  const iscsi::NegotiatedParameters& at_box() { return target_->outcome().parameters; }

  Policy policy_;
  initiator::LoginSettings host_;
  target::LoginSettings box_;
  std::optional<initiator::LoginMachine> initiator_;
  std::optional<target::LoginMachine> target_;
  size_t rounds_ = 0;
};

TEST_F(LoginPair, AgreesInTwoRoundsWithoutAuthentication) {
  run();
  expect_done();
  EXPECT_EQ(rounds_, 2U);
  EXPECT_EQ(initiator_->result().tsih, 55);
  EXPECT_EQ(initiator_->result().target_alias, "disk");
  EXPECT_EQ(at_host().target_portal_group_tag, 7);
  EXPECT_EQ(target_->outcome().initiator_name, host_name);
  EXPECT_EQ(target_->outcome().authenticated_user, "");
}

TEST_F(LoginPair, BothEndsHoldTheSameParameters) {
  host_.wishes.header_digest = DigestWish::prefer;
  host_.wishes.max_burst_length = 524288;
  host_.wishes.max_recv_data_segment_length = 65536;
  host_.wishes.max_outstanding_r2t = 8;
  host_.wishes.time2wait_s = 3;
  box_.wishes.header_digest = box_.wishes.data_digest = DigestWish::prefer;
  box_.wishes.first_burst_length = 16384;
  box_.wishes.immediate_data = false;
  box_.wishes.max_outstanding_r2t = 4;
  run();
  expect_done();
  EXPECT_TRUE(at_host().header_digest);
  EXPECT_FALSE(at_host().data_digest);
  EXPECT_EQ(at_host().max_burst_length, 524288U);
  EXPECT_EQ(at_host().first_burst_length, 16384U);
  EXPECT_EQ(at_host().max_outstanding_r2t, 4U);
  EXPECT_FALSE(at_host().immediate_data);
  EXPECT_EQ(at_host().peer_max_recv_data_segment_length, 262144U);
  EXPECT_EQ(at_box().peer_max_recv_data_segment_length, 65536U);
  EXPECT_EQ(at_host().our_max_recv_data_segment_length, at_box().peer_max_recv_data_segment_length);
  EXPECT_EQ(at_host().peer_max_recv_data_segment_length, at_box().our_max_recv_data_segment_length);
  EXPECT_EQ(at_host().header_digest, at_box().header_digest);
  EXPECT_EQ(at_host().data_digest, at_box().data_digest);
  EXPECT_EQ(at_host().initial_r2t, at_box().initial_r2t);
  EXPECT_EQ(at_host().immediate_data, at_box().immediate_data);
  EXPECT_EQ(at_host().max_burst_length, at_box().max_burst_length);
  EXPECT_EQ(at_host().first_burst_length, at_box().first_burst_length);
  EXPECT_EQ(at_host().max_outstanding_r2t, at_box().max_outstanding_r2t);
  EXPECT_EQ(at_host().default_time2wait, at_box().default_time2wait);
  EXPECT_EQ(at_host().default_time2retain, at_box().default_time2retain);
  EXPECT_EQ(at_host().target_portal_group_tag, at_box().target_portal_group_tag);
}

TEST_F(LoginPair, BothEndsCountAlike) {
  run();
  expect_done();
  EXPECT_EQ(initiator_->result().exp_stat_sn, target_->outcome().next_stat_sn);
  EXPECT_EQ(initiator_->result().cmd_sn, target_->outcome().exp_cmd_sn);
  EXPECT_EQ(initiator_->result().max_cmd_sn, SerialNumber(0xffffffff) + 63);
}

TEST_F(LoginPair, OpensADiscoverySession) {
  use_chap(true);
  host_.target_name.clear();
  run();
  expect_done();
  EXPECT_TRUE(at_host().discovery);
  EXPECT_TRUE(at_box().discovery);
}

TEST_F(LoginPair, AuthenticatesOneWay) {
  use_chap(false);
  run();
  expect_done();
  EXPECT_EQ(target_->outcome().authenticated_user, "host");
  EXPECT_FALSE(initiator_->result().target_authenticated);
}

TEST_F(LoginPair, AuthenticatesBothWaysWithTheStrongestCommonAlgorithm) {
  use_chap(true);
  policy_.algorithms = {iscsi::ChapAlgorithm::md5, iscsi::ChapAlgorithm::sha3_256};
  run();
  expect_done();
  EXPECT_EQ(target_->outcome().authenticated_user, "host");
  EXPECT_TRUE(initiator_->result().target_authenticated);
}

TEST_F(LoginPair, AnInitiatorWithASecretMayUseAnOpenTarget) {
  use_chap(false);
  policy_.chap = false;
  run();
  expect_done();
}

TEST_F(LoginPair, AnInitiatorThatWantsProofDoesNotUseAnOpenTarget) {
  use_chap(true);
  policy_.chap = false;
  run();
  EXPECT_EQ(initiator_->failure().error.text, "login status 0x0201, authentication failure");
  EXPECT_EQ(initiator_->failure().verdict, iscsi::LoginVerdict::permanent);
  EXPECT_EQ(target_->error().code, iscsi::Errc::authentication);
}

TEST_F(LoginPair, AnInitiatorWithoutASecretIsRefused) {
  policy_.chap = true;
  run();
  EXPECT_EQ(initiator_->failure().status, iscsi::LoginStatus::authentication_failure);
}

TEST_F(LoginPair, AWrongSecretIsRefused) {
  use_chap(true);
  host_.chap->secret = iscsi::Secret("another secret");
  run();
  EXPECT_EQ(initiator_->failure().status, iscsi::LoginStatus::authentication_failure);
  EXPECT_EQ(initiator_->failure().verdict, iscsi::LoginVerdict::permanent);
}

TEST_F(LoginPair, ATargetWithTheWrongSecretIsRefused) {
  use_chap(true);
  policy_.mutual_secret = "not the box's secret";
  run();
  ASSERT_EQ(initiator_->state(), initiator::LoginState::failed);
  EXPECT_EQ(initiator_->failure().status, iscsi::LoginStatus::success) << "it is we who refuse";
  EXPECT_EQ(initiator_->failure().error.code, iscsi::Errc::authentication);
  EXPECT_EQ(initiator_->failure().verdict, iscsi::LoginVerdict::permanent);
}

TEST_F(LoginPair, RequiredDigestsThatTheTargetHasNotEndTheLogin) {
  host_.wishes.data_digest = DigestWish::require;
  run();
  EXPECT_EQ(initiator_->failure().error.code, iscsi::Errc::negotiation);
}

TEST_F(LoginPair, AnUnknownTargetIsNotFound) {
  host_.target_name = "iqn.2024-01.com.example:other";
  run();
  EXPECT_EQ(initiator_->failure().error.text,
            "login status 0x0203, target not found, or not for this initiator");
}

TEST_F(LoginPair, AnInitiatorThatMayNotLearnsNoMoreThanThatOfNoTarget) {
  host_.initiator_name = "iqn.2024-01.com.example:stranger";
  run();
  EXPECT_EQ(initiator_->failure().status, iscsi::LoginStatus::not_found);
}

}  // namespace
}  // namespace vjbod
