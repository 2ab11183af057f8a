// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/handover.h"

#include <array>
#include <future>
#include <vector>

#include <gtest/gtest.h>

#include "common/runtime/shard.h"

namespace vjbod {
namespace {

struct Item : HandoverNode {
  int number = 0;
};

// Sends every item on to `next`, or keeps it.
class Station final : public HandoverReceiver, public Deferred {
 public:
  explicit Station(Reactor& reactor) : reactor_(reactor) {}

  void on_handed_over(HandoverNode& node) override {
    auto& item = static_cast<Item&>(node);
    seen.push_back(item.number);
    if (next != nullptr) {
      next->add(item);
      reactor_.defer(*this);
    }
    if (seen.size() == expected) done.set_value();
  }
  void run_deferred() override { next->send(); }

  Handover* next = nullptr;
  size_t expected = 0;
  std::vector<int> seen;
  std::promise<void> done;

 private:
  Reactor& reactor_;
};

TEST(Handover, ItemsArriveOnceInOrderHoweverTheyAreBatched) {
  // given: a sender on one shard and a receiver on another
  constexpr size_t batches = 2000;
  constexpr size_t batch_max = 7;
  Shard sender("sender", -1, 1, 1 << 20);
  Shard receiver("receiver", -1, 2, 1 << 20);
  Station station(receiver.reactor());
  Handover handover(receiver.reactor(), station);
  std::vector<Item> items;
  for (size_t batch = 0; batch < batches; ++batch) station.expected += 1 + batch % batch_max;
  items = std::vector<Item>(station.expected);
  // when
  sender.reactor().post([&] {
    size_t at = 0;
    for (size_t batch = 0; batch < batches; ++batch) {
      for (size_t i = 0; i < 1 + batch % batch_max; ++i, ++at) {
        items[at].number = static_cast<int>(at);
        handover.add(items[at]);
      }
      handover.send();
    }
  });
  station.done.get_future().wait();
  // A message behind the last batch: nothing touches the handover any more.
  for (Shard* shard : {&sender, &receiver}) {
    std::promise<void> settled;
    shard->reactor().post([&] { settled.set_value(); });
    settled.get_future().wait();
  }
  // then
  for (size_t i = 0; i < station.expected; ++i) ASSERT_EQ(station.seen[i], static_cast<int>(i));
}

TEST(Handover, ItemsGoRoundBetweenTwoShards) {
  constexpr size_t rounds = 5000;
  Shard one("one", -1, 1, 1 << 20);
  Shard two("two", -1, 2, 1 << 20);
  Station at_one(one.reactor());
  Station at_two(two.reactor());
  Handover to_one(one.reactor(), at_one);
  Handover to_two(two.reactor(), at_two);
  at_two.next = &to_one;
  std::array<Item, 3> items;
  for (size_t round = 0; round < rounds; ++round) {
    at_one.expected = at_one.seen.size() + items.size();
    at_one.done = {};
    one.reactor().post([&] {
      for (Item& item : items) to_two.add(item);
      to_two.send();
    });
    at_one.done.get_future().wait();
    std::promise<void> settled;  // the station's upcall has returned
    one.reactor().post([&] { settled.set_value(); });
    settled.get_future().wait();
  }
  EXPECT_EQ(at_one.seen.size(), rounds * items.size());
  EXPECT_EQ(at_two.seen.size(), rounds * items.size());
  // A message behind the last batch, each way: nothing touches the handovers any more.
  for (Shard* shard : {&two, &one}) {
    std::promise<void> settled;
    shard->reactor().post([&] { settled.set_value(); });
    settled.get_future().wait();
  }
}

TEST(Handover, SendingNothingWakesNobody) {
  Shard receiver("receiver", -1, 1, 1 << 20);
  Station station(receiver.reactor());
  Handover handover(receiver.reactor(), station);
  handover.send();
  std::promise<void> settled;
  receiver.reactor().post([&] { settled.set_value(); });
  settled.get_future().wait();
  EXPECT_TRUE(station.seen.empty());
}

}  // namespace
}  // namespace vjbod
