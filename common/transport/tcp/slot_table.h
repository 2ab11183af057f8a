// SPDX-License-Identifier: Apache-2.0
// Numbered slots that are reused without allocation, and handles that tell a slot's present holder
// from its earlier ones. Pure; one connection's, on its thread. Allocates only while it grows to
// its working size.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/check.h"

namespace vjbod::transport {

// Entry is reused as its last holder left it: whoever inserts resets what must be reset.
template <typename Entry>
class SlotTable {
 public:
  // A handle is generation and slot; the generation starts at 1, so that no handle is 0.
  static constexpr uint32_t slot_bits = 12;
  static constexpr uint32_t slots_max = 1u << slot_bits;
  static constexpr uint32_t slot_of(uint32_t handle) { return handle & (slots_max - 1); }

  // 0 when all slots are taken.
  uint32_t insert() {
    uint32_t slot = first_free_;
    if (slot != none) {
      first_free_ = slots_[slot].next_free;
    } else {
      if (slots_.size() == slots_max) return 0;
      slot = static_cast<uint32_t>(slots_.size());
      slots_.emplace_back();
    }
    Slot& taken = slots_[slot];
    if (++taken.generation == 1u << (32 - slot_bits)) taken.generation = 1;
    taken.used = true;
    ++size_;
    return taken.generation << slot_bits | slot;
  }
  // nullptr: the handle's holder is gone. The pointer holds until the next insert().
  Entry* find(uint32_t handle) {
    const uint32_t slot = slot_of(handle);
    if (slot >= slots_.size()) return nullptr;
    Slot& found = slots_[slot];
    return found.used && found.generation == handle >> slot_bits ? &found.entry : nullptr;
  }
  const Entry* find(uint32_t handle) const { return const_cast<SlotTable*>(this)->find(handle); }
  void erase(uint32_t handle) {
    VJBOD_CHECK(find(handle) != nullptr);
    Slot& freed = slots_[slot_of(handle)];
    freed.used = false;
    freed.next_free = first_free_;
    first_free_ = slot_of(handle);
    --size_;
  }
  // The entry of a slot, whether it is in use or not; nullptr when there has never been one.
  Entry* at_slot(uint32_t slot) { return slot < slots_.size() ? &slots_[slot].entry : nullptr; }
  size_t size() const { return size_; }

 private:
  static constexpr uint32_t none = ~0u;
  struct Slot {
    Entry entry{};
    uint32_t generation = 0;
    uint32_t next_free = none;
    bool used = false;
  };

  std::vector<Slot> slots_;
  uint32_t first_free_ = none;
  size_t size_ = 0;
};

}  // namespace vjbod::transport
