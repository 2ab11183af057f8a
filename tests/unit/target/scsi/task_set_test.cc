// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/task_set.h"

#include <gtest/gtest.h>

namespace vjbod::scsi {
namespace {

constexpr auto simple = TaskAttribute::simple;
constexpr auto ordered = TaskAttribute::ordered;
constexpr auto head = TaskAttribute::head_of_queue;

struct TaskSetTest : testing::Test {
  ~TaskSetTest() override {
    for (TaskSetMember* member : {&a, &b, &c, &d}) set.leave(*member);
  }
  TaskSet set;
  TaskSetMember a, b, c, d;
};

TEST_F(TaskSetTest, SimpleTasksRunBesideEachOther) {
  EXPECT_TRUE(set.enter(a, simple));
  EXPECT_TRUE(set.enter(b, simple));
  EXPECT_EQ(set.next(), nullptr);
}

TEST_F(TaskSetTest, AnOrderedTaskWaitsForAllBeforeItAndHoldsBackAllAfterIt) {
  set.enter(a, simple);
  EXPECT_FALSE(set.enter(b, ordered));
  EXPECT_FALSE(set.enter(c, simple));
  EXPECT_EQ(set.next(), nullptr);
  set.leave(a);
  EXPECT_EQ(set.next(), &b);
  EXPECT_EQ(set.next(), nullptr);
  set.leave(b);
  EXPECT_EQ(set.next(), &c);
}

TEST_F(TaskSetTest, AHeadOfQueueTaskRunsAtOnceAndHoldsBackLaterOnes) {
  set.enter(a, ordered);
  EXPECT_FALSE(set.enter(b, simple));
  EXPECT_TRUE(set.enter(c, head));
  set.leave(a);
  EXPECT_EQ(set.next(), nullptr);
  set.leave(c);
  EXPECT_EQ(set.next(), &b);
}

TEST_F(TaskSetTest, AWaitingTaskThatIsAbortedMakesWay) {
  set.enter(a, simple);
  set.enter(b, ordered);
  set.enter(c, simple);
  set.leave(b);
  EXPECT_EQ(set.next(), &c);
  EXPECT_FALSE(set.empty());
  set.leave(a);
  set.leave(c);
  EXPECT_TRUE(set.empty());
}

}  // namespace
}  // namespace vjbod::scsi
