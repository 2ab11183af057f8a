// SPDX-License-Identifier: Apache-2.0
#include "common/transport/tcp/pdu_sender.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/iscsi/pdu_codec.h"

namespace vjbod::transport {

void PduSender::enable_full_feature(const iscsi::NegotiatedParameters& parameters,
                                    const SequenceNumbers& numbers) {
  VJBOD_CHECK(parameters.max_burst_length > 0 && parameters.peer_max_recv_data_segment_length > 0);
  parameters_ = parameters;
  numbers_ = &numbers;
}

PduSender::Item& PduSender::push(ItemKind kind) {
  Item& item = queue_.push_back();
  item.kind = kind;
  return item;
}

// The counters of what waits, when an item is sent or given up.
void PduSender::take_off(const Item& item) {
  if (item.kind == ItemKind::control) {
    --control_waiting_;
    control_waiting_bytes_ -= item.payload.size();
    --must_arrive_;
  }
  if (item.kind == ItemKind::data_in) put_waiting_bytes_ -= item.payload.size();
}

void PduSender::pop() {
  take_off(queue_.front());
  queue_.pop_front();
}

// --- queueing ---

void PduSender::queue_control(const iscsi::Pdu& pdu, ConstBytes data) {
  const auto* response = std::get_if<iscsi::ScsiResponse>(&pdu);
  if (response != nullptr && data.empty() && send_as_status(*response)) return;
  Item& item = push(ItemKind::control);
  item.is_response = response != nullptr;
  item.itt = initiator_task_tag(pdu);
  const auto length = static_cast<uint32_t>(data.size());
  item.header_length =
      static_cast<uint8_t>(encode_pdu_header(pdu, length, parameters_.header_digest, item.header));
  if (length > 0) {
    item.owned = std::make_unique_for_overwrite<std::byte[]>(length);
    std::memcpy(item.owned.get(), data.data(), length);
    item.payload = {item.owned.get(), length};
    Crc32c crc;
    if (parameters_.data_digest) crc.add(data);
    item.trailer_length = static_cast<uint8_t>(
        iscsi::encode_pdu_trailer(length, parameters_.data_digest ? &crc : nullptr, item.trailer));
  }
  ++control_waiting_;
  ++must_arrive_;
  control_waiting_bytes_ += length;
}

// Only a response without sense may go with the data, and only if nothing stands behind that data:
// StatSN must arrive in order.
bool PduSender::send_as_status(const iscsi::ScsiResponse& response) {
  if (response.response != 0 || response.status != 0 || queue_.empty()) return false;
  if (response.bidirectional_read_overflow || response.bidirectional_read_underflow) return false;
  Item& item = queue_[queue_.size() - 1];
  if (item.kind != ItemKind::data_in || item.itt != response.itt || item.status) return false;
  item.status =
      Status{response.stat_sn, response.residual_count, response.overflow, response.underflow};
  return true;
}

void PduSender::queue_command(TaskHandle handle, const iscsi::ScsiCommand& command,
                              ConstBytes immediate) {
  Item& item = push(ItemKind::command);
  item.task = handle;
  item.payload = immediate;
  item.header_length = static_cast<uint8_t>(encode_pdu_header(
      command, static_cast<uint32_t>(immediate.size()), parameters_.header_digest, item.header));
}

uint32_t PduSender::data_in_count(size_t size) const {
  const size_t segment =
      std::min<size_t>(parameters_.peer_max_recv_data_segment_length, parameters_.max_burst_length);
  const size_t burst = parameters_.max_burst_length;
  const size_t per_burst = (burst + segment - 1) / segment;
  return static_cast<uint32_t>(size / burst * per_burst + (size % burst + segment - 1) / segment);
}

void PduSender::queue_put(TargetTransferTable::Task& task, uint64_t offset, ConstBytes data) {
  VJBOD_CHECK(offset + data.size() <= UINT32_MAX, "the Buffer Offset has 32 bits");
  if (data.empty()) return target_tasks_.set_over(task);
  Item& item = push(ItemKind::data_in);
  item.task = task.handle;
  item.itt = task.itt;
  item.offset = offset;
  item.data_sn = task.sequence_count;
  item.burst_left = parameters_.max_burst_length;
  item.payload = data;
  put_waiting_bytes_ += data.size();
  task.sequence_count += data_in_count(data.size());
}

void PduSender::queue_r2t(TaskHandle handle) {
  push(ItemKind::r2t).task = handle;
}

void PduSender::queue_data_out(TaskHandle handle, const iscsi::R2t& r2t) {
  Item& item = push(ItemKind::data_out);
  item.task = handle;
  item.itt = r2t.itt;
  item.ttt = r2t.ttt;
  item.lun = r2t.lun;
  item.offset = r2t.buffer_offset;
  item.payload = initiator_tasks_.get(handle).write.subspan(r2t.buffer_offset,
                                                            r2t.desired_data_transfer_length);
}

// --- giving up ---

void PduSender::give_back(TaskHandle handle) {
  for (size_t i = 0; i < queue_.size(); ++i) {
    Item& item = queue_[i];
    if (item.task != handle) continue;
    if (item.status) {  // its status must arrive, and means nothing without the data
      item.owned = std::make_unique_for_overwrite<std::byte[]>(item.payload.size());
      std::memcpy(item.owned.get(), item.payload.data(), item.payload.size());
      item.payload = {item.owned.get(), item.payload.size()};
      item.task = no_task;
      continue;
    }
    // The numbers of Data-In that are never made are free again.
    if (item.kind == ItemKind::data_in) target_tasks_.get(handle).sequence_count = item.data_sn;
    take_off(item);
    item.kind = ItemKind::nothing;
    item.payload = {};
  }
  batch_.give_back(handle);
}

void PduSender::drop_transfers() {
  std::vector<uint32_t> dropped;
  for (size_t i = 0; i < queue_.size(); ++i) {
    Item& item = queue_[i];
    const bool needs_lent_memory = item.task != no_task;
    if (needs_lent_memory && item.kind == ItemKind::data_in) dropped.push_back(item.itt);
    const bool speaks_of_dropped =
        item.is_response && std::find(dropped.begin(), dropped.end(), item.itt) != dropped.end();
    if (!needs_lent_memory && !speaks_of_dropped) continue;
    take_off(item);
    item.kind = ItemKind::nothing;
    item.payload = {};
  }
}

// --- sending ---

bool PduSender::fill() {
  if (!batch_.all_sent()) return true;
  batch_.clear();
  while (!queue_.empty() && !batch_.full()) {
    Item& item = queue_.front();
    switch (item.kind) {
      case ItemKind::nothing: pop(); break;
      case ItemKind::control: add_control(item); break;
      case ItemKind::command: add_command(item); break;
      case ItemKind::data_in: add_data_in(item); break;
      case ItemKind::r2t: add_r2t(item); break;
      case ItemKind::data_out: add_data_out(item); break;
    }
  }
  return !batch_.all_sent();
}

void PduSender::batch_sent() {
  batch_.clear();
  batch_must_arrive_ = false;
}

void PduSender::add_pdu(const iscsi::Pdu& pdu, ConstBytes payload, TaskHandle owner) {
  std::array<std::byte, iscsi::header_and_digest_bytes> header;
  std::array<std::byte, iscsi::trailer_bytes_max> trailer;
  const auto length = static_cast<uint32_t>(payload.size());
  const size_t header_length = encode_pdu_header(pdu, length, parameters_.header_digest, header);
  Crc32c crc;
  if (parameters_.data_digest) crc.add(payload);
  const size_t trailer_length =
      iscsi::encode_pdu_trailer(length, parameters_.data_digest ? &crc : nullptr, trailer);
  batch_.add(ConstBytes(header).first(header_length), payload,
             ConstBytes(trailer).first(trailer_length), owner);
}

void PduSender::add_control(Item& item) {
  batch_.add(ConstBytes(item.header).first(item.header_length), item.payload,
             ConstBytes(item.trailer).first(item.trailer_length), no_task);
  batch_must_arrive_ = true;
  if (item.payload.size() > SendBatch::inline_payload_max_bytes) batch_.keep(std::move(item.owned));
  pop();
}

void PduSender::add_command(Item& item) {
  std::array<std::byte, iscsi::trailer_bytes_max> trailer;
  Crc32c crc;
  if (parameters_.data_digest) crc.add(item.payload);
  const size_t trailer_length =
      iscsi::encode_pdu_trailer(static_cast<uint32_t>(item.payload.size()),
                                parameters_.data_digest ? &crc : nullptr, trailer);
  batch_.add(ConstBytes(item.header).first(item.header_length), item.payload,
             ConstBytes(trailer).first(trailer_length), item.task);
  initiator_tasks_.get(item.task).command_sent = true;
  pop();
}

void PduSender::add_data_in(Item& item) {
  const size_t size = std::min<size_t>(
      {item.payload.size(), parameters_.peer_max_recv_data_segment_length, item.burst_left});
  const bool last = size == item.payload.size();
  iscsi::DataIn pdu;
  pdu.itt = item.itt;
  pdu.final = last || size == item.burst_left;
  pdu.exp_cmd_sn = numbers_->exp_cmd_sn;
  pdu.max_cmd_sn = numbers_->max_cmd_sn;
  pdu.data_sn = item.data_sn++;
  pdu.buffer_offset = static_cast<uint32_t>(item.offset);
  if (last && item.status) {
    pdu.has_status = true;
    pdu.stat_sn = item.status->stat_sn;
    pdu.residual_count = item.status->residual_count;
    pdu.overflow = item.status->overflow;
    pdu.underflow = item.status->underflow;
  }
  add_pdu(pdu, item.payload.first(size), item.task);
  item.payload = item.payload.subspan(size);
  put_waiting_bytes_ -= size;
  item.offset += size;
  item.burst_left -= static_cast<uint32_t>(size);
  if (item.burst_left == 0) item.burst_left = parameters_.max_burst_length;
  if (!last) return;
  if (item.task != no_task) batch_.add_done(item.task);
  if (item.owned != nullptr) batch_.keep(std::move(item.owned));
  pop();
}

void PduSender::add_r2t(Item& item) {
  TargetTransferTable::Task& task = target_tasks_.get(item.task);
  const auto window = target_tasks_.open_r2t(task, parameters_.max_burst_length);
  iscsi::R2t pdu;
  pdu.lun = task.lun;
  pdu.itt = task.itt;
  pdu.ttt = window.ttt;
  pdu.stat_sn = numbers_->stat_sn;
  pdu.exp_cmd_sn = numbers_->exp_cmd_sn;
  pdu.max_cmd_sn = numbers_->max_cmd_sn;
  pdu.r2t_sn = window.r2t_sn;
  pdu.buffer_offset = window.buffer_offset;
  pdu.desired_data_transfer_length = window.length;
  add_pdu(pdu, {}, no_task);
  pop();
}

void PduSender::add_data_out(Item& item) {
  const size_t size =
      std::min<size_t>(item.payload.size(), parameters_.peer_max_recv_data_segment_length);
  iscsi::DataOut pdu;
  pdu.final = size == item.payload.size();
  pdu.lun = item.lun;
  pdu.itt = item.itt;
  pdu.ttt = item.ttt;
  pdu.exp_stat_sn = numbers_->exp_stat_sn;
  pdu.data_sn = item.data_sn++;
  pdu.buffer_offset = static_cast<uint32_t>(item.offset);
  add_pdu(pdu, item.payload.first(size), item.task);
  item.payload = item.payload.subspan(size);
  item.offset += size;
  InitiatorTransferTable::Task& task = initiator_tasks_.get(item.task);
  task.r2t_left -= static_cast<uint32_t>(size);
  task.data_out_bytes += size;
  if (pdu.final) pop();
}

}  // namespace vjbod::transport
