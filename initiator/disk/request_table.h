// SPDX-License-Identifier: Apache-2.0
// The commands of one disk, and what becomes of them when a session ends. Pure; owned by the disk.
//
//   free ─► queued ─► issued{generation} ─► done ─► free
//             ▲  ▲          │                 │
//             │  └──────────┘ session_down    │
//             └───────────────────────────────┘ retry
//
// Invariants: a slot is in exactly one state; an issued slot belongs to the generation that is up
// (an answer of another generation is a bug, because a session that has closed never answers);
// session_down puts everything issued back in front of the queue, in the order it was issued, and
// may be called only when the session has proven that it touches no memory any more.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common/base/intrusive_list.h"
#include "common/runtime/clock.h"
#include "initiator/disk/block_device.h"
#include "initiator/disk/scsi_translator.h"
#include "initiator/session/scsi_channel.h"

namespace vjbod::initiator {

struct RequestSlotTag {};

// One piece of one request. Its ChannelCommand is what the session gets.
struct RequestSlot : ChannelCommand, ListNode<RequestSlotTag> {
  enum class State : uint8_t { free, queued, issued, done };

  BlockRequest* request = nullptr;
  Piece piece;
  uint32_t blocks_under_way = 0;  // of the piece, by the command that is issued
  uint64_t covers_writes = 0;     // flush: completed writes that it covers

  State state = State::free;
  uint64_t generation = 0;  // of issued
  TimePoint issued_at{};
  TimePoint trouble_since{};  // first answer that asked for a retry
  Tries tries;                // of the command that is issued or waits
  uint32_t replays = 0;       // issued again because a session ended
  std::array<std::byte, unmap_list_of_one_bytes> parameters{};  // UNMAP
};

class RequestTable {
 public:
  explicit RequestTable(size_t slots);

  // Null when all are in use. The slot is the caller's until queue_back().
  RequestSlot* acquire();
  void queue_back(RequestSlot& slot);
  // The next one to be issued, or null.
  RequestSlot* next() { return queued_.empty() ? nullptr : &queued_.front(); }
  void issue(RequestSlot& slot, uint64_t generation, TimePoint now);
  void complete(RequestSlot& slot, uint64_t generation);
  void retry(RequestSlot& slot);    // done: to the front of the queue
  void release(RequestSlot& slot);  // done or queued: free
  // Returns how many commands will be replayed.
  size_t session_down(uint64_t generation);

  size_t slots() const { return slots_.size(); }
  size_t queued() const { return queued_count_; }
  size_t issued() const { return issued_count_; }
  bool idle() const { return free_.size() == slots_.size(); }

 private:
  using List = IntrusiveList<RequestSlot, RequestSlotTag>;

  std::vector<RequestSlot> slots_;
  std::vector<RequestSlot*> free_;
  List queued_;
  List issued_;  // in issue order
  size_t queued_count_ = 0;
  size_t issued_count_ = 0;
};

}  // namespace vjbod::initiator
