// SPDX-License-Identifier: Apache-2.0
// Random numbers. `Random` is the seeded generator that every component gets through its
// constructor, so that a run can be repeated; `fill_secure_random` is for secrets, identifiers and
// challenges, and comes from the kernel.
#pragma once

#include <cstdint>

#include "common/base/bytes.h"

namespace vjbod {

// splitmix64: ten lines, passes what back-off and simulation need, and forks cleanly.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // Uniform enough for our uses, in [0, limit); limit must not be zero.
  uint64_t below(uint64_t limit) { return next() % limit; }
  bool chance(uint64_t numerator, uint64_t denominator) { return below(denominator) < numerator; }
  void fill(Bytes bytes) {
    for (std::byte& b : bytes) b = static_cast<std::byte>(next());
  }
  // An independent generator for a component, so that one component's draws do not shift another's.
  Random fork() { return Random(next()); }

 private:
  uint64_t state_;
};

// From getrandom(2). Aborts if the kernel cannot give any: there is no safe way on.
void fill_secure_random(Bytes bytes);

}  // namespace vjbod
