// SPDX-License-Identifier: Apache-2.0
// Everything that waits to be sent on a connection, in order, and the cutting of data into Data-In
// and Data-Out PDUs (RFC 7143 sections 11.7 and 11.8). It makes the PDUs when their turn comes, so
// that they carry the sequence numbers of that moment. Sans-I/O; one connection's, on its thread;
// no allocation per I/O once grown to its working size.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "common/iscsi/framer.h"
#include "common/iscsi/parameters.h"
#include "common/iscsi/pdu.h"
#include "common/transport/data_mover.h"
#include "common/transport/tcp/initiator_transfer_table.h"
#include "common/transport/tcp/ring_queue.h"
#include "common/transport/tcp/send_batch.h"
#include "common/transport/tcp/target_transfer_table.h"

namespace vjbod::transport {

class PduSender {
 public:
  // Above these the mover stops to take PDUs in, because most of them lead to an answer. Well below
  // DataMover::control_queue_max, which leaves room for answers that are not made at once.
  static constexpr size_t crowded_pdus = DataMover::control_queue_max / 2;
  static constexpr size_t crowded_bytes = size_t{4} << 20;
  // Data that the peer is too slow to take. More of it would only push out of the CPU's caches what
  // is about to be sent.
  static constexpr size_t crowded_put_bytes = size_t{512} << 10;

  PduSender(TargetTransferTable& target_tasks, InitiatorTransferTable& initiator_tasks)
      : target_tasks_(target_tasks), initiator_tasks_(initiator_tasks) {}

  // `numbers` stay valid and current. What is queued already goes out by the rules before.
  void enable_full_feature(const iscsi::NegotiatedParameters& parameters,
                           const SequenceNumbers& numbers);

  // A good SCSI Response right behind its task's data goes as the status of the last Data-In (the S
  // bit, RFC 7143 section 11.7.3).
  void queue_control(const iscsi::Pdu& pdu, ConstBytes data);
  void queue_command(TaskHandle handle, const iscsi::ScsiCommand& command, ConstBytes immediate);
  void queue_put(TargetTransferTable::Task& task, uint64_t offset, ConstBytes data);
  void queue_r2t(TaskHandle handle);
  void queue_data_out(TaskHandle handle, const iscsi::R2t& r2t);

  // The task's lent memory is not read any more, whatever is still queued for it.
  void give_back(TaskHandle handle);
  // Leaves only what must still arrive before the connection ends: control PDUs, but no response
  // that would speak of data that is not sent any more.
  void drop_transfers();

  // Builds the next batch when the last one is sent; false when there is nothing to send.
  bool fill();
  SendBatch& batch() { return batch_; }
  void batch_sent();

  size_t control_waiting() const { return control_waiting_; }
  bool crowded() const {
    return control_waiting_ >= crowded_pdus || control_waiting_bytes_ >= crowded_bytes ||
           put_waiting_bytes_ >= crowded_put_bytes;
  }
  // Something that drop_transfers() leaves waits, or is half sent.
  bool must_flush() const { return must_arrive_ > 0 || batch_must_arrive_; }

 private:
  struct Status {
    SerialNumber stat_sn;
    uint32_t residual_count = 0;
    bool overflow = false, underflow = false;
  };
  enum class ItemKind : uint8_t { nothing, control, command, data_in, r2t, data_out };
  struct ItemFields {
    ItemKind kind = ItemKind::nothing;
    bool is_response = false;    // control: a SCSI Response
    uint8_t header_length = 0;   // control, command
    uint8_t trailer_length = 0;  // control
    TaskHandle task = no_task;   // whose lent memory it needs
    uint32_t itt = 0;
    uint32_t ttt = 0;
    uint32_t data_sn = 0;
    uint32_t burst_left = 0;  // data_in: until the next F bit
    uint32_t r2t_left = 0;    // data_out
    uint64_t offset = 0;
    ConstBytes payload;  // what is left of it
    iscsi::LunField lun{};
    std::optional<Status> status;
    std::unique_ptr<std::byte[]> owned;
  };
  struct Item : ItemFields {
    void reset() { static_cast<ItemFields&>(*this) = {}; }

    std::array<std::byte, iscsi::header_and_digest_bytes> header;
    std::array<std::byte, iscsi::trailer_bytes_max> trailer;
  };

  Item& push(ItemKind kind);
  void pop();
  void take_off(const Item& item);
  bool send_as_status(const iscsi::ScsiResponse& response);
  uint32_t data_in_count(size_t size) const;
  void add_control(Item& item);
  void add_command(Item& item);
  void add_data_in(Item& item);
  void add_r2t(Item& item);
  void add_data_out(Item& item);
  void add_pdu(const iscsi::Pdu& pdu, ConstBytes payload, TaskHandle owner);

  TargetTransferTable& target_tasks_;
  InitiatorTransferTable& initiator_tasks_;
  iscsi::NegotiatedParameters parameters_;
  const SequenceNumbers* numbers_ = nullptr;
  RingQueue<Item> queue_;
  SendBatch batch_;
  size_t control_waiting_ = 0;
  size_t control_waiting_bytes_ = 0;
  size_t put_waiting_bytes_ = 0;
  size_t must_arrive_ = 0;
  bool batch_must_arrive_ = false;
};

}  // namespace vjbod::transport
