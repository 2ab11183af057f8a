// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/slab_directory.h"

#include <array>

#include <gtest/gtest.h>

#include "common/runtime/buffer_pool.h"

namespace vjbod {
namespace {

struct Watcher final : SlabWatcher {
  void on_slab_gone(Bytes slab) override { gone.push_back(slab); }
  std::vector<Bytes> gone;
};

TEST(SlabDirectory, FindsTheSlabThatHoldsAllOfABuffer) {
  std::array<std::byte, 300> memory;
  SlabDirectory directory;
  const Bytes first = Bytes(memory).first(100), second = Bytes(memory).subspan(200);
  directory.add(second);
  directory.add(first);

  EXPECT_EQ(directory.slab_of(first).data(), first.data());
  EXPECT_EQ(directory.slab_of(first.subspan(99)).data(), first.data());
  EXPECT_EQ(directory.slab_of(second.subspan(10, 20)).data(), second.data());
  EXPECT_TRUE(directory.slab_of(Bytes(memory).subspan(99, 2)).empty());
  EXPECT_TRUE(directory.slab_of(Bytes(memory).subspan(150, 10)).empty());
  EXPECT_TRUE(directory.slab_of(Bytes(memory).subspan(199, 2)).empty());

  directory.remove(first);
  EXPECT_TRUE(directory.slab_of(first).empty());
  directory.remove(second);
}

TEST(SlabDirectory, TellsWhoeverWatchesThatASlabGoes) {
  SlabDirectory directory;
  Watcher watcher, not_any_more;
  directory.watch(watcher);
  directory.watch(not_any_more);
  directory.unwatch(not_any_more);
  {
    BufferPool pool(size_t{1} << 20, &directory);
    Bytes slab;
    {
      Buffer buffer = pool.acquire(5000);
      slab = buffer.bytes();
      EXPECT_EQ(directory.slab_of(slab.subspan(17, 100)).data(), slab.data());
    }
    EXPECT_TRUE(watcher.gone.empty());
    pool.trim(0);
    ASSERT_EQ(watcher.gone.size(), 1U);
    EXPECT_EQ(watcher.gone[0].data(), slab.data());
    EXPECT_TRUE(directory.slab_of(slab).empty());
  }
  EXPECT_TRUE(not_any_more.gone.empty());
  directory.unwatch(watcher);
}

}  // namespace
}  // namespace vjbod
