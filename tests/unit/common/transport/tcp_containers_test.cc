// SPDX-License-Identifier: Apache-2.0
// The containers of the TCP mover, against the standard ones.
#include <deque>
#include <map>

#include <gtest/gtest.h>

#include "common/base/random.h"
#include "common/transport/tcp/ring_queue.h"
#include "common/transport/tcp/send_batch.h"
#include "common/transport/tcp/slot_table.h"
#include "common/transport/tcp/tag_map.h"

namespace vjbod::transport {
namespace {

TEST(TagMap, BehavesAsAMapUnderRandomUse) {
  Random random(1);
  TagMap map;
  std::map<uint32_t, uint32_t> model;
  for (int i = 0; i < 20000; ++i) {
    const auto tag = static_cast<uint32_t>(random.below(300)) * 256;  // collisions on purpose
    const auto value = static_cast<uint32_t>(random.below(1000) + 1);
    if (random.below(2) == 0) {
      EXPECT_EQ(map.insert(tag, value), model.emplace(tag, value).second);
    } else {
      map.erase(tag);
      model.erase(tag);
    }
    const auto probe = static_cast<uint32_t>(random.below(300)) * 256;
    const auto found = model.find(probe);
    ASSERT_EQ(map.find(probe), found == model.end() ? 0 : found->second);
    ASSERT_EQ(map.size(), model.size());
  }
}

TEST(SlotTable, HandlesAreUniqueAndSlotsAreReused) {
  SlotTable<int> table;
  const uint32_t first = table.insert();
  *table.find(first) = 11;
  table.erase(first);
  const uint32_t second = table.insert();
  EXPECT_NE(first, second);
  EXPECT_EQ(SlotTable<int>::slot_of(first), SlotTable<int>::slot_of(second));
  EXPECT_EQ(table.find(first), nullptr);
  EXPECT_EQ(*table.find(second), 11);  // as its last holder left it
}

TEST(SlotTable, AGenerationThatWrapsNeverGivesTheHandleZero) {
  SlotTable<int> table;
  for (uint32_t i = 0; i < (1u << 20) + 10; ++i) {
    const uint32_t handle = table.insert();
    ASSERT_NE(handle, 0u);
    table.erase(handle);
  }
}

TEST(RingQueue, BehavesAsADequeUnderRandomUse) {
  struct Element {
    int value = 0;
    void reset() { value = 0; }
  };
  Random random(1);
  RingQueue<Element> queue;
  std::deque<int> model;
  for (int i = 0; i < 20000; ++i) {
    if (random.below(100) < 52) {
      Element& element = queue.push_back();
      ASSERT_EQ(element.value, 0);
      element.value = i + 1;
      model.push_back(i + 1);
    } else if (!model.empty()) {
      ASSERT_EQ(queue.front().value, model.front());
      queue.pop_front();
      model.pop_front();
    }
    ASSERT_EQ(queue.size(), model.size());
    if (!model.empty()) {
      ASSERT_EQ(queue[model.size() - 1].value, model.back());
    }
  }
}

class SendBatchTest : public ::testing::Test {
 protected:
  std::vector<std::byte> unsent() const {
    std::vector<std::byte> bytes;
    for (const iovec& piece : batch.unsent()) {
      const auto* from = static_cast<const std::byte*>(piece.iov_base);
      bytes.insert(bytes.end(), from, from + piece.iov_len);
    }
    return bytes;
  }
  static std::vector<std::byte> filled(size_t size, int value) {
    return std::vector<std::byte>(size, static_cast<std::byte>(value));
  }
  std::vector<std::byte> add(size_t payload_size, TaskHandle owner) {
    payloads.push_back(std::make_unique<std::vector<std::byte>>(filled(payload_size, 2)));
    batch.add(filled(48, 1), *payloads.back(), filled(3, 3), owner);
    std::vector<std::byte> all = filled(48, 1);
    all.insert(all.end(), payload_size, std::byte{2});
    all.insert(all.end(), 3, std::byte{3});
    return all;
  }

  SendBatch batch;
  std::vector<std::unique_ptr<std::vector<std::byte>>> payloads;
};

TEST_F(SendBatchTest, PdusFollowEachOtherOnTheWire) {
  std::vector<std::byte> expected;
  for (size_t size : {0, 10, 256, 257, 4096}) {
    const auto pdu = add(size, 1);
    expected.insert(expected.end(), pdu.begin(), pdu.end());
  }
  EXPECT_EQ(unsent(), expected);
  // Three in the arena are one piece with the fourth's header; then payload, trailer with header,
  // payload, trailer.
  EXPECT_EQ(batch.unsent().size(), 5u);
}

TEST_F(SendBatchTest, AnyPartOfItCanBeSent) {
  auto expected = add(1000, 1);
  const auto second = add(1000, 1);
  expected.insert(expected.end(), second.begin(), second.end());
  while (!expected.empty()) {
    const size_t part = std::min<size_t>(expected.size(), 77);
    batch.sent(part);
    expected.erase(expected.begin(), expected.begin() + static_cast<ptrdiff_t>(part));
    ASSERT_EQ(unsent(), expected);
  }
  EXPECT_TRUE(batch.all_sent());
}

TEST_F(SendBatchTest, MemoryThatIsGivenBackIsNotReadAnyMore) {
  auto expected = add(1000, 1);
  batch.add_done(1);
  const auto second = add(1000, 2);
  batch.add_done(2);
  expected.insert(expected.end(), second.begin(), second.end());
  batch.sent(100);
  expected.erase(expected.begin(), expected.begin() + 100);

  batch.give_back(1);
  payloads[0].reset();

  EXPECT_EQ(unsent(), expected);
  ASSERT_EQ(batch.done().size(), 1u);
  EXPECT_EQ(batch.done()[0], 2u);
}

TEST_F(SendBatchTest, ItIsFullAtItsLimits) {
  for (size_t i = 0; i < SendBatch::pdus_max; ++i) {
    ASSERT_FALSE(batch.full());
    add(1000, 1);
  }
  EXPECT_TRUE(batch.full());
  batch.clear();
  add(SendBatch::payload_max_bytes, 1);
  EXPECT_TRUE(batch.full());
}

}  // namespace
}  // namespace vjbod::transport
