// SPDX-License-Identifier: Apache-2.0
// From an Initiator Task Tag to a task, without allocation once it has grown to its working size.
// Pure; one connection's, on its thread.
#pragma once

#include <cstdint>
#include <vector>

namespace vjbod::transport {

// Open addressing, at most half full. Values are never 0.
class TagMap {
 public:
  // False when the tag is already there.
  bool insert(uint32_t tag, uint32_t value) {
    if (2 * (size_ + 1) > cells_.size()) grow();
    size_t at = place_of(tag);
    for (; cells_[at].value != 0; at = next(at))
      if (cells_[at].tag == tag) return false;
    cells_[at] = {tag, value};
    ++size_;
    return true;
  }
  // 0: not there.
  uint32_t find(uint32_t tag) const {
    if (cells_.empty()) return 0;
    size_t at = place_of(tag);
    while (cells_[at].value != 0 && cells_[at].tag != tag) at = next(at);
    return cells_[at].value;
  }
  void erase(uint32_t tag) {
    if (cells_.empty()) return;
    size_t hole = place_of(tag);
    while (cells_[hole].value != 0 && cells_[hole].tag != tag) hole = next(hole);
    if (cells_[hole].value == 0) return;
    --size_;
    // Moves up whatever could not be found any more across the hole.
    for (size_t at = next(hole); cells_[at].value != 0; at = next(at)) {
      const size_t home = place_of(cells_[at].tag);
      if (((at - home) & mask()) >= ((at - hole) & mask())) {
        cells_[hole] = cells_[at];
        hole = at;
      }
    }
    cells_[hole].value = 0;
  }
  size_t size() const { return size_; }

 private:
  struct Cell {
    uint32_t tag = 0;
    uint32_t value = 0;
  };

  size_t mask() const { return cells_.size() - 1; }
  size_t next(size_t at) const { return (at + 1) & mask(); }
  size_t place_of(uint32_t tag) const { return (tag * 2654435761u >> 8) & mask(); }
  void grow() {
    std::vector<Cell> old(cells_.empty() ? 64 : 2 * cells_.size());
    old.swap(cells_);
    size_ = 0;
    for (const Cell& cell : old)
      if (cell.value != 0) insert(cell.tag, cell.value);
  }

  std::vector<Cell> cells_;  // a power of two
  size_t size_ = 0;
};

}  // namespace vjbod::transport
