// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/command_window.h"

#include <gtest/gtest.h>

namespace vjbod::iscsi {
namespace {

using Verdict = CommandWindow::Verdict;

// Just before the numbers wrap, where plain comparison goes wrong.
constexpr SerialNumber first{0xfffffffe};

TEST(CommandWindow, TakesCommandsInOrderUntilItIsFull) {
  CommandWindow window(first, 4);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(window.take(first + i, false), Verdict::accepted);
  }
  EXPECT_EQ(window.take(first + 4, false), Verdict::ignored);
  EXPECT_EQ(window.exp_cmd_sn(), first + 4);
  EXPECT_EQ(window.max_cmd_sn(), first + 3);
}

TEST(CommandWindow, OpensByOneForEachFinishedCommand) {
  CommandWindow window(first, 1);
  ASSERT_EQ(window.take(first, false), Verdict::accepted);

  window.finished(false);

  EXPECT_EQ(window.max_cmd_sn(), first + 1);
  EXPECT_EQ(window.take(first + 1, false), Verdict::accepted);
}

TEST(CommandWindow, NeverTakesBackWhatItPromised) {
  CommandWindow window(first, 8);
  SerialNumber highest = window.max_cmd_sn();
  for (uint32_t i = 0; i < 100; ++i) {
    ASSERT_EQ(window.take(first + i, false), Verdict::accepted);
    EXPECT_GE(window.max_cmd_sn(), highest);
    highest = window.max_cmd_sn();
    window.finished(false);
  }
  EXPECT_EQ(window.max_cmd_sn(), window.exp_cmd_sn() + 7);
}

TEST(CommandWindow, DropsDuplicatesSilently) {
  CommandWindow window(first, 4);
  ASSERT_EQ(window.take(first, false), Verdict::accepted);
  EXPECT_EQ(window.take(first, false), Verdict::ignored);
  EXPECT_EQ(window.take(first - 1, false), Verdict::ignored);
  EXPECT_EQ(window.unfinished(), 1U);
}

TEST(CommandWindow, AHoleInsideTheWindowIsToldApartFromOutside) {
  CommandWindow window(first, 4);
  EXPECT_EQ(window.take(first + 1, false), Verdict::hole);
  EXPECT_EQ(window.take(first + 3, false), Verdict::hole);
  EXPECT_EQ(window.take(first + 4, false), Verdict::ignored);
  EXPECT_EQ(window.exp_cmd_sn(), first);
}

TEST(CommandWindow, ImmediateCommandsUseUpNoNumber) {
  CommandWindow window(first, 1);
  EXPECT_EQ(window.take(first, true), Verdict::accepted);
  EXPECT_EQ(window.exp_cmd_sn(), first);
  EXPECT_EQ(window.take(first, false), Verdict::accepted);
  EXPECT_EQ(window.take(first + 1, true), Verdict::accepted) << "also when the window is closed";
  window.finished(true);
  EXPECT_EQ(window.max_cmd_sn(), first);
}

TEST(CommandWindow, ImmediateCommandsAreBounded) {
  CommandWindow window(first, 1, 2);
  EXPECT_EQ(window.take(first, true), Verdict::accepted);
  EXPECT_EQ(window.take(first, true), Verdict::accepted);
  EXPECT_EQ(window.take(first, true), Verdict::too_many_immediate);
  window.finished(true);
  EXPECT_EQ(window.take(first, true), Verdict::accepted);
}

TEST(CommandCredit, IsClosedUntilTheTargetOpensIt) {
  CommandCredit credit(first);
  EXPECT_EQ(credit.room(), 0U);
  EXPECT_TRUE(credit.update(first, first + 3));
  EXPECT_EQ(credit.room(), 4U);
}

TEST(CommandCredit, CountsDownAcrossTheWrap) {
  CommandCredit credit(first);
  credit.update(first, first + 2);
  EXPECT_EQ(credit.take(), first);
  EXPECT_EQ(credit.take(), first + 1);
  EXPECT_EQ(credit.take(), first + 2);
  EXPECT_EQ(credit.room(), 0U);
  EXPECT_EQ(credit.current(), SerialNumber(1));
}

TEST(CommandCredit, IgnoresAPairThatContradictsItself) {
  CommandCredit credit(first);
  credit.update(first, first + 3);
  EXPECT_TRUE(credit.update(first, first - 2));
  EXPECT_EQ(credit.max_cmd_sn(), first + 3);
  EXPECT_TRUE(credit.update(first, first - 1)) << "a closed window is not a contradiction";
}

TEST(CommandCredit, IgnoresOldNews) {
  CommandCredit credit(first);
  credit.update(first, first + 3);
  credit.take();
  credit.update(first + 1, first + 5);
  credit.update(first, first + 3);
  EXPECT_EQ(credit.exp_cmd_sn(), first + 1);
  EXPECT_EQ(credit.max_cmd_sn(), first + 5);
}

TEST(CommandCredit, RefusesAnAcknowledgementOfWhatWasNeverSent) {
  CommandCredit credit(first);
  credit.update(first, first + 3);
  credit.take();
  EXPECT_TRUE(credit.update(first + 1, first + 4));
  EXPECT_FALSE(credit.update(first + 2, first + 9));
  EXPECT_EQ(credit.max_cmd_sn(), first + 4);
}

TEST(CommandWindow, BothEndsAgreeForAsLongAsTheyTalk) {
  CommandWindow window(first, 3);
  CommandCredit credit(first);
  uint32_t sent = 0;
  for (int round = 0; round < 50; ++round) {
    ASSERT_TRUE(credit.update(window.exp_cmd_sn(), window.max_cmd_sn()));
    for (; credit.room() > 0; ++sent) {
      ASSERT_EQ(window.take(credit.take(), false), Verdict::accepted);
    }
    window.finished(false);
  }
  EXPECT_EQ(sent, 3U + 49U);
}

TEST(CommandWindowDeath, FinishingMoreThanWasTakenIsABug) {
  CommandWindow window(first, 3);
  EXPECT_DEATH(window.finished(false), "unfinished_");
}

TEST(CommandCreditDeath, SendingIntoAClosedWindowIsABug) {
  CommandCredit credit(first);
  EXPECT_DEATH(credit.take(), "closed window");
}

}  // namespace
}  // namespace vjbod::iscsi
