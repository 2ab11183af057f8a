// SPDX-License-Identifier: Apache-2.0
#include "initiator/disk/request_table.h"

#include "common/base/check.h"

namespace vjbod::initiator {

using State = RequestSlot::State;

namespace {

// One slot may be on the session's list and on ours; say which is meant.
ListNode<RequestSlotTag>& our_node(RequestSlot& slot) {
  return slot;
}

}  // namespace

RequestTable::RequestTable(size_t slots) : slots_(slots) {
  free_.reserve(slots);
  for (size_t i = slots; i-- > 0;) free_.push_back(&slots_[i]);
}

RequestSlot* RequestTable::acquire() {
  if (free_.empty()) return nullptr;
  RequestSlot* slot = free_.back();
  free_.pop_back();
  VJBOD_CHECK(slot->state == State::free);
  slot->request = nullptr;
  slot->piece = {};
  slot->blocks_under_way = 0;
  slot->covers_writes = 0;
  slot->generation = 0;
  slot->trouble_since = {};
  slot->tries = {};
  slot->replays = 0;
  return slot;
}

void RequestTable::queue_back(RequestSlot& slot) {
  VJBOD_CHECK(slot.state == State::free);
  slot.state = State::queued;
  queued_.push_back(slot);
  ++queued_count_;
}

void RequestTable::issue(RequestSlot& slot, uint64_t generation, TimePoint now) {
  VJBOD_CHECK(slot.state == State::queued);
  VJBOD_CHECK(issued_.empty() || issued_.front().generation == generation,
              "generation {} issues while commands of generation {} are under way", generation,
              issued_.front().generation);
  our_node(slot).unlink();
  --queued_count_;
  slot.state = State::issued;
  slot.generation = generation;
  slot.issued_at = now;
  issued_.push_back(slot);
  ++issued_count_;
}

void RequestTable::complete(RequestSlot& slot, uint64_t generation) {
  VJBOD_CHECK(slot.state == State::issued && slot.generation == generation,
              "an answer of generation {} for a command of generation {}", generation,
              slot.generation);
  our_node(slot).unlink();
  --issued_count_;
  slot.state = State::done;
}

void RequestTable::retry(RequestSlot& slot) {
  VJBOD_CHECK(slot.state == State::done);
  slot.state = State::queued;
  queued_.push_front(slot);
  ++queued_count_;
}

void RequestTable::release(RequestSlot& slot) {
  VJBOD_CHECK(slot.state == State::done || slot.state == State::queued);
  if (slot.state == State::queued) {
    our_node(slot).unlink();
    --queued_count_;
  }
  slot.state = State::free;
  slot.request = nullptr;
  free_.push_back(&slot);
}

size_t RequestTable::session_down(uint64_t generation) {
  size_t replayed = 0;
  // From the youngest to the oldest, each to the front: the oldest ends up first.
  while (!issued_.empty()) {
    RequestSlot& slot = issued_.back();
    VJBOD_CHECK(slot.generation == generation);
    our_node(slot).unlink();
    --issued_count_;
    slot.state = State::queued;
    slot.blocks_under_way = 0;
    ++slot.replays;
    queued_.push_front(slot);
    ++queued_count_;
    ++replayed;
  }
  return replayed;
}

}  // namespace vjbod::initiator
