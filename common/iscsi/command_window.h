// SPDX-License-Identifier: Apache-2.0
// Which commands may be sent and taken: CmdSN, ExpCmdSN and MaxCmdSN of a session, at each end (RFC
// 7143 section 4.2.2.1). Pure; on the session's thread. All comparisons are serial.
#pragma once

#include <cstdint>

#include "common/base/serial_number.h"

namespace vjbod::iscsi {

// The target's end. The window is a promise of task slots: `depth` non-immediate commands may be
// unfinished at a time, and each that finishes opens the window by one. MaxCmdSN never moves back,
// so what was promised once is kept.
class CommandWindow {
 public:
  enum class Verdict {
    accepted,
    // Outside the window or seen before: the RFC wants it dropped without a word.
    ignored,
    // Inside the window with numbers missing before it. A session has one connection and an
    // initiator sends in order of CmdSN on a connection, so the missing ones cannot come any more:
    // with ErrorRecoveryLevel 0 the connection must be closed (Errc::bad_sequence_number).
    hole,
    // Immediate, and immediate_max of those are unfinished: Reject with immediate_command_reject.
    too_many_immediate,
  };

  // Immediate commands stand outside the numbering, so they need a bound of their own.
  static constexpr uint32_t immediate_max_default = 32;

  // `first`: CmdSN of the first Login Request, which is that of the first command too, as login
  // requests are immediate. 1 <= depth < 2^31.
  CommandWindow(SerialNumber first, uint32_t depth, uint32_t immediate_max = immediate_max_default);

  // For every PDU from the initiator that has a CmdSN, before anything else is decided about it:
  // also one that will be rejected has used up its number. The CmdSN of an immediate command is
  // not judged: it is outside the window by right.
  Verdict take(SerialNumber cmd_sn, bool immediate);
  // Once for each accepted command, when its slot is free again.
  void finished(bool immediate);

  SerialNumber exp_cmd_sn() const { return exp_; }
  SerialNumber max_cmd_sn() const { return max_; }
  uint32_t unfinished() const { return unfinished_; }
  uint32_t immediate_unfinished() const { return immediate_unfinished_; }

 private:
  SerialNumber exp_;
  SerialNumber max_;
  uint32_t unfinished_ = 0;
  uint32_t immediate_unfinished_ = 0;
  uint32_t immediate_max_;
};

// The initiator's end: what it may send, by what the target last said.
class CommandCredit {
 public:
  // Closed until the first response has brought a window; login requests, being immediate, do not
  // wait for it.
  explicit CommandCredit(SerialNumber first) : next_(first), exp_(first), max_(first - 1) {}

  // For every PDU from the target (each has both). False, and nothing taken over, if the target
  // acknowledges commands that were never sent: the connection must be closed
  // (Errc::bad_sequence_number). A pair with MaxCmdSN < ExpCmdSN-1 is ignored, and so is each
  // number that is behind what was said before, as the RFC asks.
  bool update(SerialNumber exp_cmd_sn, SerialNumber max_cmd_sn);

  // How many non-immediate commands may be sent now.
  uint32_t room() const { return next_ <= max_ ? max_.value - next_.value + 1 : 0; }
  // The CmdSN of the next command; an immediate one carries it without using it up.
  SerialNumber current() const { return next_; }
  // Uses it up. room() must not be zero.
  SerialNumber take();

  SerialNumber exp_cmd_sn() const { return exp_; }
  SerialNumber max_cmd_sn() const { return max_; }

 private:
  SerialNumber next_;
  SerialNumber exp_;
  SerialNumber max_;
};

}  // namespace vjbod::iscsi
