// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/status_sequence.h"

#include <gtest/gtest.h>

namespace vjbod::iscsi {
namespace {

using Verdict = ExpectedStatus::Verdict;

constexpr SerialNumber last{0xffffffff};

TEST(StatusSequence, ResponsesUseUpANumber) {
  EXPECT_TRUE(uses_stat_sn(ScsiResponse{}));
  EXPECT_TRUE(uses_stat_sn(TaskManagementResponse{}));
  EXPECT_TRUE(uses_stat_sn(LoginResponse{}));
  EXPECT_TRUE(uses_stat_sn(TextResponse{}));
  EXPECT_TRUE(uses_stat_sn(LogoutResponse{}));
  EXPECT_TRUE(uses_stat_sn(AsyncMessage{}));
  EXPECT_TRUE(uses_stat_sn(Reject{}));
  EXPECT_TRUE(uses_stat_sn(NopIn{.itt = 4}));
  EXPECT_TRUE(uses_stat_sn(DataIn{.has_status = true}));
}

TEST(StatusSequence, PdusWithoutStatusDoNot) {
  EXPECT_FALSE(uses_stat_sn(R2t{}));
  EXPECT_FALSE(uses_stat_sn(DataIn{}));
  EXPECT_FALSE(uses_stat_sn(NopIn{.itt = reserved_tag, .ttt = 1}));
  EXPECT_FALSE(uses_stat_sn(ScsiCommand{}));
}

TEST(StatusSequence, CountsAcknowledgementsAcrossTheWrap) {
  StatusSequence sequence(last);
  sequence.advance();
  sequence.advance();
  EXPECT_EQ(sequence.current(), SerialNumber(1));
  EXPECT_TRUE(sequence.acknowledge(SerialNumber(0)));
  EXPECT_EQ(sequence.acknowledged(), SerialNumber(0));
  EXPECT_TRUE(sequence.acknowledge(last)) << "old news";
  EXPECT_EQ(sequence.acknowledged(), SerialNumber(0));
}

TEST(StatusSequence, RefusesAnAcknowledgementOfWhatWasNeverSent) {
  StatusSequence sequence(last);
  EXPECT_TRUE(sequence.acknowledge(last));
  EXPECT_FALSE(sequence.acknowledge(SerialNumber(0)));
}

TEST(ExpectedStatus, FollowsTheTarget) {
  ExpectedStatus expected;
  expected.start(last);
  EXPECT_EQ(expected.take(SerialNumber(0)), Verdict::in_order);
  EXPECT_EQ(expected.take(SerialNumber(1)), Verdict::in_order);
  EXPECT_EQ(expected.exp_stat_sn(), SerialNumber(2));
}

TEST(ExpectedStatus, TellsADuplicateFromAHole) {
  ExpectedStatus expected;
  expected.start(last);
  EXPECT_EQ(expected.take(last), Verdict::duplicate);
  EXPECT_EQ(expected.take(SerialNumber(1)), Verdict::hole);
  EXPECT_EQ(expected.exp_stat_sn(), SerialNumber(0));
}

}  // namespace
}  // namespace vjbod::iscsi
