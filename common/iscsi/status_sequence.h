// SPDX-License-Identifier: Apache-2.0
// The numbering of status on a connection: StatSN and ExpStatSN, at each end (RFC 7143 section
// 4.2.2.2). Pure; on the session's thread. All comparisons are serial.
#pragma once

#include "common/base/serial_number.h"
#include "common/iscsi/pdu.h"

namespace vjbod::iscsi {

// Whether a PDU of a target uses up a StatSN. The others carry the next one, or none: R2T, a
// Data-In without status, and a NOP-In that answers nothing (sections 11.7, 11.8 and 11.19).
bool uses_stat_sn(const Pdu& pdu);

// The target's end.
class StatusSequence {
 public:
  explicit StatusSequence(SerialNumber first) : next_(first), acknowledged_(first) {}

  // The StatSN for the next PDU to be sent, and the step after it if that PDU uses it up.
  SerialNumber current() const { return next_; }
  void advance() { ++next_; }

  // ExpStatSN of a PDU from the initiator. False if it acknowledges status that was never sent: the
  // connection must be closed (Errc::bad_sequence_number). One behind what was acknowledged before
  // is old news, and fine.
  bool acknowledge(SerialNumber exp_stat_sn) {
    if (exp_stat_sn > next_) return false;
    if (exp_stat_sn > acknowledged_) acknowledged_ = exp_stat_sn;
    return true;
  }
  // Statuses up to the one before this have arrived.
  SerialNumber acknowledged() const { return acknowledged_; }

 private:
  SerialNumber next_;
  SerialNumber acknowledged_;
};

// The initiator's end.
class ExpectedStatus {
 public:
  enum class Verdict {
    in_order,
    duplicate,  // seen before: drop the PDU
    // Statuses before this one were lost. With ErrorRecoveryLevel 0 they cannot be asked for: the
    // connection must be closed (Errc::bad_sequence_number).
    hole,
  };

  // The first Login Response sets the number to go on from, whatever it is.
  void start(SerialNumber stat_sn_of_first_response) { expected_ = stat_sn_of_first_response + 1; }
  // For each later PDU of a target that uses_stat_sn(); the others are not judged, and must not be
  // given.
  Verdict take(SerialNumber stat_sn) {
    if (stat_sn < expected_) return Verdict::duplicate;
    if (stat_sn > expected_) return Verdict::hole;
    ++expected_;
    return Verdict::in_order;
  }
  SerialNumber exp_stat_sn() const { return expected_; }

 private:
  SerialNumber expected_;
};

}  // namespace vjbod::iscsi
