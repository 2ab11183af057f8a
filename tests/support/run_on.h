// SPDX-License-Identifier: Apache-2.0
// Lets a test's own thread work on a shard.
#pragma once

#include <chrono>
#include <future>
#include <utility>

#include "common/runtime/shard.h"

namespace vjbod::test {

// Runs `work` on the shard's thread and waits for its result.
template <typename F>
auto run_on(Shard& shard, F work) {
  std::packaged_task<decltype(work())()> task(std::move(work));
  auto result = task.get_future();
  shard.reactor().post([&task] { task(); });
  return result.get();
}

// Asks on the shard until the answer is yes; false when it does not become so in 20 s.
template <typename F>
bool eventually(Shard& shard, F condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!run_on(shard, condition)) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace vjbod::test
