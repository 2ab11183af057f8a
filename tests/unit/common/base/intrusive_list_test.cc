// SPDX-License-Identifier: Apache-2.0
#include "common/base/intrusive_list.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace vjbod {
namespace {

struct Other;
struct Item : ListNode<>, ListNode<Other> {
  explicit Item(int v) : value(v) {}
  int value;
};
using List = IntrusiveList<Item>;

std::vector<int> values(List& list) {
  std::vector<int> out;
  list.for_each([&](Item& item) { out.push_back(item.value); });
  return out;
}
void clear(List& list) {
  while (!list.empty()) list.pop_front();
}
bool linked(const Item& item) {
  return static_cast<const ListNode<>&>(item).linked();
}
void unlink(Item& item) {
  static_cast<ListNode<>&>(item).unlink();
}

TEST(IntrusiveList, KeepsOrderAtBothEnds) {
  Item one(1), two(2), three(3);
  List list;
  list.push_back(two);
  list.push_back(three);
  list.push_front(one);
  EXPECT_EQ(values(list), (std::vector{1, 2, 3}));
  EXPECT_EQ(list.front().value, 1);
  EXPECT_EQ(list.back().value, 3);
  EXPECT_EQ(list.pop_front().value, 1);
  EXPECT_FALSE(linked(one));
  clear(list);
  EXPECT_TRUE(list.empty());
}

TEST(IntrusiveList, AnElementLeavesFromTheMiddleAndMayLeaveTwice) {
  Item one(1), two(2), three(3);
  List list;
  for (Item* item : {&one, &two, &three}) list.push_back(*item);
  unlink(two);
  unlink(two);
  EXPECT_EQ(values(list), (std::vector{1, 3}));
  clear(list);
}

TEST(IntrusiveList, AppendMovesAllInOrder) {
  Item one(1), two(2), three(3);
  List list, more;
  list.push_back(one);
  more.push_back(two);
  more.push_back(three);
  list.append(more);
  EXPECT_TRUE(more.empty());
  EXPECT_EQ(values(list), (std::vector{1, 2, 3}));
  clear(list);
}

TEST(IntrusiveList, ForEachAllowsTheElementToLeave) {
  Item one(1), two(2);
  List list;
  list.push_back(one);
  list.push_back(two);
  list.for_each([](Item& item) { unlink(item); });
  EXPECT_TRUE(list.empty());
}

TEST(IntrusiveList, AnElementCanBeOnOneListPerTag) {
  Item one(1);
  List list;
  IntrusiveList<Item, Other> other;
  list.push_back(one);
  other.push_back(one);
  unlink(one);
  EXPECT_EQ(&other.pop_front(), &one);
}

TEST(IntrusiveListDeath, MisuseIsABug) {
  EXPECT_DEATH(
      {
        List list;
        Item item(1);
        list.push_back(item);
        list.push_back(item);
      },
      "already on a list");
  EXPECT_DEATH(
      {
        List list;
        auto item = std::make_unique<Item>(1);
        list.push_back(*item);
        item.reset();
      },
      "destroyed while on a list");
  EXPECT_DEATH(
      {
        Item item(1);
        List list;
        list.push_back(item);
      },
      "with elements on it");
  EXPECT_DEATH(
      {
        List list;
        list.pop_front();
      },
      "empty");
}

}  // namespace
}  // namespace vjbod
