// SPDX-License-Identifier: Apache-2.0
// iSCSI over TCP below the DataMover seam: the byte stream, framing and digests, the cutting of
// data into Data-In and Data-Out PDUs, the R2T loop. The pure parts are PduSender (sending), Framer
// (receiving) and the two transfer tables; this class joins them to a ByteStream and to the owner.
// Owned by a session, on its reactor's thread; destroyed only before start() or after on_closed.
//
// A turn: bytes that came are taken in, PDU by PDU, with the upcalls they lead to; whatever that
// queued leaves in one write at the end of the turn.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/iscsi/framer.h"
#include "common/runtime/reactor.h"
#include "common/transport/data_mover.h"
#include "common/transport/tcp/byte_stream.h"
#include "common/transport/tcp/initiator_transfer_table.h"
#include "common/transport/tcp/pdu_sender.h"
#include "common/transport/tcp/target_transfer_table.h"

namespace vjbod::transport {

class TcpDataMover final : public DataMover, private ByteStreamEvents, private Deferred {
 public:
  // How long terminate() may go on to send what was queued, and then wait for the peer to close (a
  // close with unread bytes would make the kernel throw away what the peer has not taken yet).
  static constexpr Duration flush_time_max = std::chrono::seconds(1);
  // The receive buffer of the full feature phase: one read brings this much, and it holds a PDU.
  static constexpr size_t receive_buffer_bytes = size_t{256} << 10;
  // Data segments from this size on are received into their place; before such a segment comes,
  // reads take at most `small_read_bytes` into the buffer, from where they have to be copied.
  static constexpr uint32_t large_segment_bytes = 32 * 1024;
  static constexpr size_t small_read_bytes = 4096;
  // Reads and writes without giving others on the reactor a turn.
  static constexpr int reads_per_turn_max = 16;
  static constexpr int writes_per_turn_max = 8;
  // Reads of so many bytes are begun in one turn: those that are answered at once are then sent
  // while they are in the CPU's caches, and more are begun in the next turn.
  static constexpr uint64_t reads_begun_per_turn_bytes = 512 * 1024;

  TcpDataMover(Reactor& reactor, std::unique_ptr<ByteStream> stream, Role role);
  ~TcpDataMover() override;

  Capabilities capabilities() const override { return {}; }
  std::string peer() const override { return peer_; }
  std::string local() const override { return local_; }
  void start(DataMoverEvents& events) override;
  void enable_full_feature(const iscsi::NegotiatedParameters& parameters,
                           const SequenceNumbers& numbers) override;
  void send_control(const iscsi::Pdu& pdu, ConstBytes data) override;
  TaskHandle begin_task(const iscsi::ScsiCommand& command, ConstBytes write, Bytes read) override;
  void put_data(TaskHandle task, uint64_t offset, ConstBytes data) override;
  void get_data(TaskHandle task, uint64_t offset, Bytes into) override;
  void cancel_transfer(TaskHandle task) override;
  void end_task(TaskHandle task) override;
  uint32_t data_sequence_count(TaskHandle task) const override;
  void terminate(const Error& reason) override;

 private:
  enum class State {
    idle,
    running,
    flushing,   // terminate() was called: no upcall any more, what must arrive is sent
    lingering,  // all is sent; the peer is to close
    closing,    // the stream is closed; on_closed is due
    closed,
  };
  enum class Parsed { starved, stopped };

  // ByteStreamEvents
  void on_readable() override;
  void on_writable() override;
  // Deferred: the end of a turn
  void run_deferred() override;

  void receive();
  Parsed parse();
  void on_header();
  void on_pdu();
  void on_data_in(const iscsi::DataIn& pdu);
  void on_data_out();
  void on_r2t(const iscsi::R2t& pdu);
  void on_scsi_response(const iscsi::ScsiResponse& pdu, ConstBytes header_bytes);
  void place(Bytes destination);
  void deliver_control(ReceivedControl& received);
  void deliver_transfers_done();
  void adopt_parameters();
  void transfer_over(TaskHandle task);

  void flush();
  void finish_batch();
  void flushed();
  void linger();
  void close_now(const Error& reason);
  Error lost(std::string_view what) const;
  Error bad(const Error& found) const;

  Reactor& reactor_;
  const std::unique_ptr<ByteStream> stream_;
  const Role role_;
  const std::string peer_, local_;
  State state_ = State::idle;
  DataMoverEvents* events_ = nullptr;
  iscsi::NegotiatedParameters parameters_;
  bool full_feature_ = false;
  bool parameters_changed_ = false;  // the framer does not know yet
  bool unknown_opcode_ = false;      // the PDU under way has one; pdu_ does not hold it
  bool in_upcall_of_pdu_ = false;    // data() of the framer is lent to an upcall

  TargetTransferTable target_tasks_;
  InitiatorTransferTable initiator_tasks_;
  PduSender sender_;

  std::unique_ptr<std::byte[]> receive_buffer_;
  iscsi::Framer framer_;
  iscsi::Pdu pdu_;  // the one under way, from its header on
  // The header of a Data-In with status: it must outlast the data that is placed.
  std::array<std::byte, iscsi::bhs_bytes> status_header_{};
  TaskHandle placing_ = no_task;    // whose memory its data goes into
  int large_segments_likely_ = 0;   // counts down with PDUs without a large data segment
  bool reading_paused_ = false;     // too many answers wait to be sent
  uint64_t reads_begun_bytes_ = 0;  // in this turn

  bool write_blocked_ = false;
  bool write_failed_ = false;
  std::vector<TaskHandle> transfers_done_;
  Timer flush_timer_;
  Error reason_;
};

}  // namespace vjbod::transport
