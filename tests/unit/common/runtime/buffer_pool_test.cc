// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/buffer_pool.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace vjbod {
namespace {

constexpr size_t kib = 1024, mib = 1024 * kib;

TEST(BufferPool, GivesTheSmallestClassThatFitsPageAligned) {
  BufferPool pool(4 * mib);
  for (auto [asked, given] : {std::pair{size_t{0}, 4 * kib}, std::pair{4 * kib, 4 * kib},
                              std::pair{4 * kib + 1, 64 * kib}, std::pair{256 * kib, 256 * kib},
                              std::pair{1 * mib, 1 * mib}}) {
    Buffer buffer = pool.acquire(asked);
    ASSERT_TRUE(buffer);
    EXPECT_EQ(buffer.bytes().size(), given);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.bytes().data()) % 4096, 0U);
    buffer.bytes().back() = std::byte{1};
  }
  EXPECT_EQ(pool.lent_bytes(), 0U);
}

TEST(BufferPool, UsesASlabAgain) {
  BufferPool pool(1 * mib);
  const std::byte* first = pool.acquire(64 * kib).bytes().data();
  Buffer again = pool.acquire(64 * kib);
  EXPECT_EQ(again.bytes().data(), first);
  EXPECT_EQ(pool.held_bytes(), 64 * kib);
}

TEST(BufferPool, IsEmptyHandedAtItsLimitAndNotBefore) {
  BufferPool pool(128 * kib);
  Buffer one = pool.acquire(64 * kib);
  Buffer two = pool.acquire(64 * kib);
  EXPECT_TRUE(two);
  EXPECT_FALSE(pool.acquire(1));
  one.reset();
  EXPECT_TRUE(pool.acquire(64 * kib));
}

TEST(BufferPool, GivesUpFreeSlabsOfOneClassForAnother) {
  BufferPool pool(1 * mib);
  { Buffer large = pool.acquire(1 * mib); }
  EXPECT_EQ(pool.held_bytes(), 1 * mib);
  EXPECT_TRUE(pool.acquire(4 * kib));
  EXPECT_LE(pool.held_bytes(), 1 * mib);
}

TEST(BufferPool, TrimGivesBackWhatIsFreeAndKeepsWhatIsLent) {
  BufferPool pool(4 * mib);
  Buffer lent = pool.acquire(64 * kib);
  { Buffer free = pool.acquire(1 * mib); }
  pool.trim(0);
  EXPECT_EQ(pool.held_bytes(), 64 * kib);
  EXPECT_EQ(pool.lent_bytes(), 64 * kib);
}

TEST(BufferPool, TrimKeepsAsMuchAsItIsTold) {
  BufferPool pool(4 * mib);
  {
    std::vector<Buffer> all;
    for (int i = 0; i < 16; ++i) all.push_back(pool.acquire(64 * kib));
  }
  pool.trim(256 * kib);
  EXPECT_EQ(pool.held_bytes(), 256 * kib);
}

TEST(Buffer, MovesItsLoanAndReturnsItOnce) {
  BufferPool pool(1 * mib);
  Buffer one = pool.acquire(4 * kib);
  Buffer two = std::move(one);
  EXPECT_FALSE(one);  // NOLINT(bugprone-use-after-move): what a moved-from buffer is, is promised
  EXPECT_TRUE(one.bytes().empty());
  EXPECT_EQ(pool.lent_bytes(), 4 * kib);
  two = pool.acquire(64 * kib);
  EXPECT_EQ(pool.lent_bytes(), 64 * kib) << "assigning returned the first slab";
  two.reset();
  two.reset();
  EXPECT_EQ(pool.lent_bytes(), 0U);
}

TEST(BufferPoolDeath, MisuseIsABug) {
  BufferPool pool(4 * mib);
  EXPECT_DEATH(pool.acquire(1 * mib + 1), "asked for");
  EXPECT_DEATH(
      {
        Buffer kept;
        BufferPool short_lived(1 * mib);
        kept = short_lived.acquire(1);
      },
      "still lent");
}

}  // namespace
}  // namespace vjbod
