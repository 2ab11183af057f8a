// SPDX-License-Identifier: Apache-2.0
// The last state transitions of one machine, kept without allocation, and printed when something
// went wrong.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <string>

#include <fmt/core.h>

namespace vjbod {

// Names are string literals (they are kept by pointer).
class TransitionLog {
 public:
  static constexpr size_t capacity = 32;

  void add(std::chrono::nanoseconds at, const char* event, const char* from, const char* to) {
    entries_[count_ % capacity] = {at, event, from, to};
    ++count_;
  }
  // Oldest first, one line each: "12.345678s connect_failed: connecting -> backing_off".
  std::string text() const {
    std::string out;
    size_t first = count_ > capacity ? count_ - capacity : 0;
    for (size_t i = first; i < count_; ++i) {
      const Entry& e = entries_[i % capacity];
      out += fmt::format("{:.6f}s {}: {} -> {}\n", std::chrono::duration<double>(e.at).count(),
                         e.event, e.from, e.to);
    }
    return out;
  }

 private:
  struct Entry {
    std::chrono::nanoseconds at{};
    const char* event = "";
    const char* from = "";
    const char* to = "";
  };
  std::array<Entry, capacity> entries_{};
  size_t count_ = 0;
};

}  // namespace vjbod
