// SPDX-License-Identifier: Apache-2.0
#include "initiator/disk/request_table.h"

#include <gtest/gtest.h>

namespace vjbod::initiator {
namespace {

class RequestTableTest : public testing::Test {
 protected:
  ~RequestTableTest() override {
    table.session_down(issued_generation);
    while (RequestSlot* slot = table.next()) table.release(*slot);
  }
  RequestSlot& queue(uint64_t lba) {
    RequestSlot* slot = table.acquire();
    slot->piece.lba = lba;
    table.queue_back(*slot);
    return *slot;
  }
  RequestSlot& issue_next(uint64_t generation) {
    RequestSlot* slot = table.next();
    table.issue(*slot, generation, {});
    issued_generation = generation;
    return *slot;
  }
  std::vector<uint64_t> take_all(uint64_t generation) {
    std::vector<uint64_t> order;
    while (RequestSlot* slot = table.next()) {
      order.push_back(slot->piece.lba);
      table.issue(*slot, generation, {});
      table.complete(*slot, generation);
      table.release(*slot);
    }
    return order;
  }

  RequestTable table{4};
  uint64_t issued_generation = 0;
};

TEST_F(RequestTableTest, IssuesInTheOrderQueued) {
  queue(1);
  queue(2);
  queue(3);

  EXPECT_EQ(take_all(1), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_TRUE(table.idle());
}

TEST_F(RequestTableTest, HasNoMoreThanItsSlots) {
  for (uint64_t i = 0; i < 4; ++i) queue(i);

  EXPECT_EQ(table.acquire(), nullptr);
}

TEST_F(RequestTableTest, PutsWhatWasIssuedBackInFrontInIssueOrder) {
  queue(1);
  queue(2);
  queue(3);
  issue_next(1);
  issue_next(1);

  EXPECT_EQ(table.session_down(1), 2u);

  EXPECT_EQ(table.issued(), 0u);
  EXPECT_EQ(take_all(2), (std::vector<uint64_t>{1, 2, 3}));
}

TEST_F(RequestTableTest, CountsReplays) {
  RequestSlot& slot = queue(1);
  for (uint64_t generation = 1; generation <= 3; ++generation) {
    issue_next(generation);
    table.session_down(generation);
  }

  EXPECT_EQ(slot.replays, 3u);
}

TEST_F(RequestTableTest, ARetryGoesToTheFront) {
  queue(1);
  queue(2);
  RequestSlot& first = issue_next(1);
  table.complete(first, 1);

  table.retry(first);

  EXPECT_EQ(table.next(), &first);
}

TEST_F(RequestTableTest, AnAnswerOfAnOlderGenerationIsABug) {
  RequestSlot& slot = queue(1);
  issue_next(1);
  table.session_down(1);
  issue_next(2);

  EXPECT_DEATH(table.complete(slot, 1), "generation");
}

TEST_F(RequestTableTest, AnAnswerForAQueuedCommandIsABug) {
  RequestSlot& slot = queue(1);

  EXPECT_DEATH(table.complete(slot, 1), "");
}

TEST_F(RequestTableTest, TwoGenerationsAtTheTargetAreABug) {
  queue(1);
  queue(2);
  issue_next(1);

  EXPECT_DEATH(issue_next(2), "generation");
}

}  // namespace
}  // namespace vjbod::initiator
