// SPDX-License-Identifier: Apache-2.0
// The seam between iSCSI and what carries it, cut where RFC 7145 (iSER) and RFC 5047 (DA) cut it.
// Above it: login, windows, tasks, SCSI, written once. Below it: a TCP stream with Data-In, R2T and
// Data-Out PDUs, or RDMA writes and reads. Data-In, R2T and solicited Data-Out never cross it.
//
// The contract, each line of which has a test that runs against every mover
// (tests/unit/common/transport/data_mover_contract_test.cc):
//  1. All calls and upcalls are on the owner's reactor thread. No upcall comes from inside a
//  downcall.
//  2. Control PDUs are typed; nobody above parses a header. Their data segments come beside them as
//  bytes.
//  3. Data-In, R2T, solicited Data-Out exist only below.
//  4. The mover stamps StatSN, ExpCmdSN, MaxCmdSN (target) or ExpStatSN (initiator) into the PDUs
//  it makes, from the
//     SequenceNumbers lent at enable_full_feature(); the caller stamps the PDUs that it sends
//     itself.
//  5. Data memory is lent. Target: from put_data/get_data until the matching on_transfer_done or
//  on_closed. Initiator:
//     from begin_task until the SCSI response was delivered by on_control (the mover delivers it
//     only once no more data can come for the task) or on_closed. A stuck command is got back by
//     closing, never by taking the memory away.
//  6. terminate() may be called again. on_closed comes exactly once, is the last upcall, and after
//  it no lent byte is
//     read or written by anyone. A mover may be destroyed only after on_closed (or before start()).
//  7. Bounded: send_control may have control_queue_max PDUs waiting; more is a bug of the caller
//  and aborts.
//  8. No Asio and no verbs type here; peers are text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/base/serial_number.h"
#include "common/iscsi/parameters.h"
#include "common/iscsi/pdu.h"

namespace vjbod::transport {

enum class Kind {
  iscsi,
  iser,
  memory
};                               // what people call the connection type; memory is for tests
const char* name_of(Kind kind);  // "iSCSI", "iSER", "memory"

enum class Role { initiator, target };

// What this mover can do; the login machines offer and accept nothing beyond it.
struct Capabilities {
  Kind kind = Kind::iscsi;
  bool digests = true;                                 // may HeaderDigest/DataDigest be CRC32C
  bool rdma_extensions = false;                        // RDMAExtensions=Yes
  bool requires_initial_r2t = true;                    // InitialR2T=Yes must be the outcome
  uint32_t max_recv_data_segment_length = 256 * 1024;  // bytes we declare
  // What the peer really takes in one PDU of a normal session, whatever it declares; 0: that.
  uint32_t peer_data_segment_length_max = 0;
};

// What was agreed on, bounded by what the peer really takes. A discovery session is answered with
// the buffers of the login, which hold the RFC's default.
inline iscsi::NegotiatedParameters bounded(iscsi::NegotiatedParameters agreed,
                                           const Capabilities& capabilities) {
  const uint32_t most = capabilities.peer_data_segment_length_max;
  if (most > 0 && !agreed.discovery && agreed.peer_max_recv_data_segment_length > most)
    agreed.peer_max_recv_data_segment_length = most;
  return agreed;
}

// Sequence numbers as they stand now, owned by the session, read by the mover whenever it makes a
// PDU.
struct SequenceNumbers {
  SerialNumber stat_sn;      // target: the next StatSN to be used
  SerialNumber exp_cmd_sn;   // target
  SerialNumber max_cmd_sn;   // target
  SerialNumber exp_stat_sn;  // initiator
};

// A task at the mover. Given out by begin_task (initiator) or with the SCSI Command (target); 0 is
// none. Valid until end_task (target), the SCSI response (initiator), or on_closed.
using TaskHandle = uint32_t;
inline constexpr TaskHandle no_task = 0;

struct ReceivedControl {
  iscsi::Pdu pdu;
  ConstBytes data;          // valid during the upcall only; for a SCSI Command: the immediate data
  ConstBytes header_bytes;  // the 48 bytes as received (a Reject quotes them); valid during the
                            // upcall only
  TaskHandle task =
      no_task;  // target, with a SCSI Command: names it for put_data, get_data and end_task
  // Initiator, with a SCSI Response: bytes of the task that the transport placed into the read
  // buffer, and those of the write buffer that it sent.
  uint64_t data_in_bytes = 0;
  uint64_t data_out_bytes = 0;
};

class DataMoverEvents {
 public:
  // A control PDU came (anything but Data-In, R2T and solicited Data-Out). A PDU that cannot be
  // decoded, breaks a length limit, fails the header digest, or belongs to no task ends the
  // connection below (on_closed with the reason); a data digest error of a control PDU likewise
  // (ErrorRecoveryLevel 0).
  virtual void on_control(const ReceivedControl& received) = 0;
  // Target. The transfer is over: put_data's bytes are handed to the transport and the memory is
  // free again; get_data's bytes have all arrived.
  virtual void on_transfer_done(TaskHandle task) = 0;
  // Target, in full feature phase: a PDU came whose opcode is none of an initiator's; it was
  // dropped, with its data. For a Reject; the header is valid during the upcall only. (In the login
  // phase and at the initiator it ends the connection.)
  virtual void on_unknown_opcode(ConstBytes /*header_bytes*/) {}
  // Any bytes came from the peer: it lives. At most once per loop turn.
  virtual void on_peer_alive() = 0;
  // The last upcall, ever.
  virtual void on_closed(const Error& reason) = 0;

 protected:
  ~DataMoverEvents() = default;
};

class DataMover {
 public:
  static constexpr size_t control_queue_max = 4096;  // PDUs that may wait to be sent

  virtual ~DataMover() = default;

  virtual Capabilities capabilities() const = 0;
  virtual std::string peer() const = 0;   // "10.0.0.2:3260", for logs and status
  virtual std::string local() const = 0;  // the address the peer reached, for SendTargets

  // Begins to receive. `events` outlives on_closed. The login phase follows: until
  // enable_full_feature() the limits of RFC 7143's defaults hold (8192 bytes, no digests).
  virtual void start(DataMoverEvents& events) = 0;

  // The login is over. Target: call it right after send_control of the final Login Response (which
  // still goes out under login rules). Initiator: call it when that response has come, before
  // anything else is sent. `numbers` must stay valid and current until on_closed.
  virtual void enable_full_feature(const iscsi::NegotiatedParameters& parameters,
                                   const SequenceNumbers& numbers) = 0;

  // Queues a PDU, in order with everything sent before. `data` is copied. Not for SCSI Commands.
  virtual void send_control(const iscsi::Pdu& pdu, ConstBytes data) = 0;

  // --- initiator ---
  // Lends the task's memory (write: read by the mover; read: written by it; at most one is
  // non-empty), sends the command with as much immediate data as was negotiated, and answers R2Ts
  // until the SCSI Response. The ITT in `command` is the caller's and unique among its live tasks;
  // the mover sets nothing in it but the F bit and the data length.
  virtual TaskHandle begin_task(const iscsi::ScsiCommand& command, ConstBytes write,
                                Bytes read) = 0;

  // --- target ---
  // `offset` is into the task's data (the Buffer Offset of the wire), whose first byte is 0. One
  // transfer per task at a time. Bytes of put_data go out in order, before any SCSI Response sent
  // after it. get_data asks (R2T or RDMA Read) for exactly [offset, offset + size).
  virtual void put_data(TaskHandle task, uint64_t offset, ConstBytes data) = 0;
  virtual void get_data(TaskHandle task, uint64_t offset, Bytes into) = 0;
  // Gives up the transfer under way (ABORT TASK, a reset): on_transfer_done still comes, soon and
  // without waiting for the peer, with the data incomplete. Nothing when no transfer is under way.
  virtual void cancel_transfer(TaskHandle task) = 0;
  // The task is over at the target: call once per SCSI Command, after its last transfer and before
  // or after its response; also for a command refused without transfer. Data that still comes for
  // it (a peer that goes on sending) is dropped.
  virtual void end_task(TaskHandle task) = 0;
  // How many Data-In PDUs plus R2Ts the task has had, for ExpDataSN in its response. Zero where the
  // transport has none.
  virtual uint32_t data_sequence_count(TaskHandle task) const = 0;

  // Closes. What was queued by send_control before is still sent if the peer takes it within a
  // moment (a Logout Response or a Login error must arrive); transfers are not. `reason` comes back
  // in on_closed.
  virtual void terminate(const Error& reason) = 0;
};

}  // namespace vjbod::transport
