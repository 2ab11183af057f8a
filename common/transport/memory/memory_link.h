// SPDX-License-Identifier: Apache-2.0
// The cable between the two ends of a MemoryDataMover pair: one queue of messages per direction,
// with the delay and the speed of that direction, and the faults that a simulation wants to see.
// It delivers in order and loses nothing, as TCP and RDMA do, unless it is told to. All of it runs
// on the reactor's thread, and all its time is the reactor's: the same calls give the same events.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/iscsi/pdu.h"
#include "common/runtime/reactor.h"
#include "common/transport/data_mover.h"

namespace vjbod::transport {

// When the lent memory is read and written. Both are legal, and a session must live with both.
enum class DataPlacement {
  early,  // as TCP: the bytes are copied when they are sent, and the sender is done with them then
  late,   // as RDMA at its slowest: they are read and written at the moment they arrive
};

struct MemoryLinkOptions {
  Duration delay_to_target{0};
  Duration delay_to_initiator{0};
  uint64_t bytes_per_second = 0;  // each direction; 0: no limit
  DataPlacement placement = DataPlacement::early;
  Kind kind = Kind::memory;  // what the movers give themselves out for
};

// What is fast and places data at the last legal moment, as RDMA.
inline constexpr MemoryLinkOptions rdma_like_link{
    .delay_to_target = std::chrono::microseconds(3),
    .delay_to_initiator = std::chrono::microseconds(3),
    .placement = DataPlacement::late,
    .kind = Kind::iser};

struct MemoryMessage {
  enum class Kind { control, data_in, r2t, data_out, close };

  Kind kind = Kind::control;
  iscsi::Opcode opcode = iscsi::Opcode::nop_out;  // what a fault asks for; close has none
  std::array<std::byte, iscsi::bhs_bytes> header{};
  std::vector<std::byte> data;
  ConstBytes lent;  // late placement: the payload, still in the sender's lent memory
  uint32_t itt = 0;
  TaskHandle task = no_task;  // the target's
  uint32_t transfer = 0;      // which transfer of the task
  uint64_t offset = 0;
  size_t length = 0;

  TimePoint arrives_at{};
};

// An end of the link, as the link sees it.
class MemoryLinkEnd {
 public:
  virtual bool ready_to_receive() const = 0;
  virtual void on_message(const MemoryMessage& message) = 0;
  virtual void on_messages_taken() = 0;  // after the last of those that arrived together
  // Late placement: the message was read out of this end's lent memory, which is free again.
  virtual void on_lent_read(const MemoryMessage& message) = 0;
  virtual void on_severed(const Error& reason) = 0;

 protected:
  ~MemoryLinkEnd() = default;
};

class MemoryLink {
 public:
  MemoryLink(Reactor& reactor, const MemoryLinkOptions& options);
  MemoryLink(const MemoryLink&) = delete;
  MemoryLink& operator=(const MemoryLink&) = delete;

  // --- for tests and simulation. `from` is the sender whose direction is meant. ---
  void set_delay(Role from, Duration delay) { direction(from).delay = delay; }
  void set_bandwidth(Role from, uint64_t bytes_per_second) {
    direction(from).bytes_per_second = bytes_per_second;
  }
  // Nothing arrives any more until resume(); nobody is told.
  void stall(Role from);
  void resume(Role from);
  // Both ends notice at once. What is under way is lost.
  void sever();
  // Half-open: only this end notices; what the other one sends goes nowhere from now on.
  void sever_unnoticed_by(Role unaware);
  // The next PDU of the kind never arrives. Data transfers are known as data_in, r2t and data_out.
  void drop_next(iscsi::Opcode opcode) { drop_next_ = opcode; }
  // The next PDU of the kind, and what is behind it, waits for resume().
  void hold_next(iscsi::Opcode opcode) { hold_next_ = opcode; }
  // The next data_in or data_out arrives by half, then both ends lose the link.
  void sever_during_next(iscsi::Opcode opcode) { sever_during_next_ = opcode; }

  bool severed() const { return severed_; }
  size_t waiting(Role from) const;  // messages that have not arrived yet
  DataPlacement placement() const { return placement_; }

  // --- for the movers ---
  void attach(Role role, MemoryLinkEnd* end) { direction(other(role)).receiver = end; }
  void end_is_ready(Role role) { schedule(direction(other(role))); }
  void send(Role from, MemoryMessage message);
  size_t control_waiting(Role from) const;
  // The sender's lent memory goes back: messages that still need it never arrive. Of one task
  // (by ITT) or, with nullopt, of all; then the SCSI Responses of these tasks do not arrive either,
  // because they would speak of data that never came.
  void forget_lent(Role from, std::optional<uint32_t> itt);

 private:
  struct Direction {
    Direction(MemoryLink& link, Reactor& reactor, Duration delay_, uint64_t bytes_per_second_)
        : delay(delay_),
          bytes_per_second(bytes_per_second_),
          arrival(reactor, [this, &link] { link.deliver(*this); }) {}

    Duration delay;
    uint64_t bytes_per_second;
    bool stalled = false;
    TimePoint free_at{};  // when the last byte of what was sent so far has left
    std::deque<MemoryMessage> messages;
    MemoryLinkEnd* receiver = nullptr;
    Timer arrival;
  };

  static Role other(Role role) { return role == Role::initiator ? Role::target : Role::initiator; }
  Direction& direction(Role from) { return from == Role::initiator ? to_target_ : to_initiator_; }
  const Direction& direction(Role from) const {
    return from == Role::initiator ? to_target_ : to_initiator_;
  }
  void schedule(Direction& direction);
  void deliver(Direction& direction);
  MemoryLinkEnd* sender_of(const Direction& way) const {
    return &way == &to_target_ ? to_initiator_.receiver : to_target_.receiver;
  }
  bool take(std::optional<iscsi::Opcode>& fault, const MemoryMessage& message);
  void cut();

  Reactor& reactor_;
  DataPlacement placement_;
  bool severed_ = false;
  std::optional<iscsi::Opcode> drop_next_, hold_next_, sever_during_next_;
  Direction to_target_;
  Direction to_initiator_;
};

}  // namespace vjbod::transport
