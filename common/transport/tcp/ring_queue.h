// SPDX-License-Identifier: Apache-2.0
// A first-in-first-out queue that allocates only while it grows to its working size (std::deque
// allocates as it moves along). Pure; one connection's, on its thread.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace vjbod::transport {

// T::reset() frees what an element owns and makes it ready for its next use.
template <typename T>
class RingQueue {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // Counted from the front.
  T& operator[](size_t index) { return cells_[place(index)]; }
  T& front() { return (*this)[0]; }
  T& push_back() {
    if (size_ == cells_.size()) grow();
    return cells_[place(size_++)];
  }
  void pop_front() {
    front().reset();
    first_ = place(1);
    --size_;
  }

 private:
  size_t place(size_t index) const { return (first_ + index) & (cells_.size() - 1); }
  void grow() {
    std::vector<T> larger(cells_.empty() ? 16 : 2 * cells_.size());
    for (size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    cells_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> cells_;  // a power of two
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace vjbod::transport
