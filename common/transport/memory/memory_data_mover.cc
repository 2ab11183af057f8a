// SPDX-License-Identifier: Apache-2.0
#include "common/transport/memory/memory_data_mover.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/iscsi/errc.h"
#include "common/iscsi/pdu_codec.h"

namespace vjbod::transport {

using iscsi::Errc;
using Message = MemoryMessage;

MemoryDataMover::MemoryDataMover(Reactor& reactor, std::shared_ptr<MemoryLink> link, Role role,
                                 std::string local, std::string peer, Kind kind)
    : reactor_(reactor),
      link_(std::move(link)),
      kind_(kind),
      role_(role),
      local_(std::move(local)),
      peer_(std::move(peer)) {
  link_->attach(role_, this);
}

MemoryDataMover::~MemoryDataMover() {
  VJBOD_CHECK(state_ == State::idle || state_ == State::closed,
              "mover to {} destroyed before on_closed", peer_);
  if (state_ == State::idle) close({Errc::closed_locally, "The connection was not taken."});
  link_->attach(role_, nullptr);
}

Capabilities MemoryDataMover::capabilities() const {
  Capabilities result;
  result.kind = kind_;
  result.digests = false;
  return result;
}

void MemoryDataMover::start(DataMoverEvents& events) {
  VJBOD_CHECK(state_ == State::idle && events_ == nullptr);
  events_ = &events;
  state_ = State::running;
  if (link_->severed())
    close({Errc::connection_lost, "The memory link was severed."});
  else
    link_->end_is_ready(role_);
}

void MemoryDataMover::enable_full_feature(const iscsi::NegotiatedParameters& parameters,
                                          const SequenceNumbers&) {
  parameters_ = parameters;
  full_feature_ = true;
}

void MemoryDataMover::send_control(const iscsi::Pdu& pdu, ConstBytes data) {
  VJBOD_CHECK(!std::holds_alternative<iscsi::ScsiCommand>(pdu), "commands go through begin_task");
  VJBOD_CHECK(is_from_initiator(pdu) == (role_ == Role::initiator));
  if (state_ != State::running) return;
  VJBOD_CHECK(link_->control_waiting(role_) < control_queue_max,
              "more than {} PDUs wait to be sent to {}", control_queue_max, peer_);
  if (data.size() > parameters_.peer_max_recv_data_segment_length) {
    return close({Errc::data_too_long,
                  fmt::format("A {} with {} bytes was to be sent to {}, which takes {}.",
                              name_of(opcode_of(pdu)), data.size(), peer_,
                              parameters_.peer_max_recv_data_segment_length)});
  }
  Message message;
  message.opcode = opcode_of(pdu);
  message.itt = initiator_task_tag(pdu);
  message.data.assign(data.begin(), data.end());
  encode_bhs(pdu, static_cast<uint32_t>(data.size()), 0, message.header);
  send(std::move(message));
}

TaskHandle MemoryDataMover::begin_task(const iscsi::ScsiCommand& command, ConstBytes write,
                                       Bytes read) {
  VJBOD_CHECK(role_ == Role::initiator && (write.empty() || read.empty()));
  if (state_ != State::running) return no_task;
  VJBOD_CHECK(full_feature_, "a SCSI Command in the login phase");
  auto [entry, is_new] = initiator_tasks_.try_emplace(command.itt);
  VJBOD_CHECK(is_new, "ITT {:#x} is in use", command.itt);
  size_t immediate = 0;
  if (parameters_.immediate_data) {
    immediate = std::min<size_t>({write.size(), parameters_.first_burst_length,
                                  parameters_.peer_max_recv_data_segment_length});
  }
  InitiatorTask& task = entry->second;
  task.handle = ++last_handle_;
  task.write = write;
  task.read = read;
  task.data_out_bytes = immediate;

  Message message;
  message.opcode = iscsi::Opcode::scsi_command;
  message.itt = command.itt;
  iscsi::ScsiCommand sent = command;
  sent.final = true;
  encode_bhs(sent, static_cast<uint32_t>(immediate), 0, message.header);
  message.data.assign(write.begin(), write.begin() + static_cast<ptrdiff_t>(immediate));
  send(std::move(message));
  return task.handle;
}

MemoryDataMover::TargetTask& MemoryDataMover::target_task(TaskHandle handle) {
  VJBOD_CHECK(role_ == Role::target);
  auto entry = target_tasks_.find(handle);
  VJBOD_CHECK(entry != target_tasks_.end(), "task {} is not known", handle);
  return entry->second;
}

// The payload goes with the message, or stays where it is until the message arrives.
void MemoryDataMover::fill(Message& message, ConstBytes from) const {
  message.length = from.size();
  if (link_->placement() == DataPlacement::late)
    message.lent = from;
  else
    message.data.assign(from.begin(), from.end());
}

void MemoryDataMover::put_data(TaskHandle handle, uint64_t offset, ConstBytes data) {
  if (state_ != State::running) return;
  TargetTask& task = target_task(handle);
  VJBOD_CHECK(!task.moving, "one transfer per task at a time");
  task.moving = true;
  ++task.transfer;
  task.into = {};
  Message message;
  message.kind = Message::Kind::data_in;
  message.opcode = iscsi::Opcode::data_in;
  message.itt = task.itt;
  message.task = handle;
  message.transfer = task.transfer;
  message.offset = offset;
  fill(message, data);
  if (message.lent.empty()) transfer_over(handle, task);
  send(std::move(message));
}

void MemoryDataMover::get_data(TaskHandle handle, uint64_t offset, Bytes into) {
  if (state_ != State::running) return;
  TargetTask& task = target_task(handle);
  VJBOD_CHECK(!task.moving, "one transfer per task at a time");
  task.moving = true;
  ++task.transfer;
  task.offset = offset;
  task.into = into;
  Message message;
  message.kind = Message::Kind::r2t;
  message.opcode = iscsi::Opcode::r2t;
  message.itt = task.itt;
  message.task = handle;
  message.transfer = task.transfer;
  message.offset = offset;
  message.length = into.size();
  send(std::move(message));
}

void MemoryDataMover::cancel_transfer(TaskHandle handle) {
  if (state_ != State::running) return;
  TargetTask& task = target_task(handle);
  if (!task.moving || task.done) return;
  link_->forget_lent(role_, task.itt);
  transfer_over(handle, task);
}

void MemoryDataMover::end_task(TaskHandle handle) {
  if (state_ != State::running) return;
  VJBOD_CHECK(!target_task(handle).moving, "end_task while a transfer is under way");
  target_tasks_.erase(handle);
}

uint32_t MemoryDataMover::data_sequence_count(TaskHandle) const {
  return 0;  // data moves without PDUs
}

void MemoryDataMover::terminate(const Error& reason) {
  VJBOD_CHECK(state_ != State::idle, "terminate before start");
  close(reason);
}

void MemoryDataMover::transfer_over(TaskHandle handle, TargetTask& task) {
  task.done = true;
  task.into = {};
  done_.push_back(handle);
  reactor_.defer(*this);
}

void MemoryDataMover::close(const Error& reason) {
  if (state_ == State::closing || state_ == State::closed) return;
  const bool started = state_ == State::running;
  state_ = State::closing;
  reason_ = reason;
  link_->forget_lent(role_, std::nullopt);
  Message message;
  message.kind = Message::Kind::close;
  send(std::move(message));
  if (started) reactor_.defer(*this);
}

void MemoryDataMover::run_deferred() {
  std::vector<TaskHandle> done = std::exchange(done_, {});
  for (TaskHandle handle : done) {
    if (state_ != State::running) break;
    TargetTask& task = target_task(handle);
    task.moving = task.done = false;
    events_->on_transfer_done(handle);
  }
  if (state_ != State::closing) return;
  state_ = State::closed;
  initiator_tasks_.clear();
  target_tasks_.clear();
  const Error reason = reason_;
  events_->on_closed(reason);  // this object may be gone now
}

void MemoryDataMover::on_message(const Message& message) {
  if (state_ != State::running) return;
  switch (message.kind) {
    case Message::Kind::control: return on_control(message);
    case Message::Kind::data_in: return on_data_in(message);
    case Message::Kind::r2t: return on_r2t(message);
    case Message::Kind::data_out: return on_data_out(message);
    case Message::Kind::close:
      return close({Errc::connection_lost, fmt::format("{} closed the connection.", peer_)});
  }
}

void MemoryDataMover::on_messages_taken() {
  if (state_ == State::running) events_->on_peer_alive();
}

void MemoryDataMover::on_control(const Message& message) {
  Result<iscsi::Pdu> decoded = iscsi::decode_bhs(message.header);
  if (!decoded) return close(decoded.error());
  if (is_from_initiator(*decoded) == (role_ == Role::initiator)) {
    return close(
        {Errc::wrong_direction, fmt::format("{} sent a {}.", peer_, name_of(opcode_of(*decoded)))});
  }
  ReceivedControl received{.pdu = *decoded, .data = message.data, .header_bytes = message.header};
  if (role_ == Role::target && std::holds_alternative<iscsi::ScsiCommand>(*decoded)) {
    received.task = ++last_handle_;
    target_tasks_[received.task].itt = message.itt;
  }
  if (std::holds_alternative<iscsi::ScsiResponse>(*decoded)) {
    auto entry = initiator_tasks_.find(message.itt);
    if (entry == initiator_tasks_.end()) {
      return close(
          {Errc::protocol, fmt::format("{} sent a SCSI Response for ITT {:#x}, which is no task.",
                                       peer_, message.itt)});
    }
    link_->forget_lent(role_, message.itt);  // a response that comes before the data was fetched
    received.data_in_bytes = entry->second.data_in_bytes;
    received.data_out_bytes = entry->second.data_out_bytes;
    initiator_tasks_.erase(entry);  // its memory is the caller's again
  }
  events_->on_control(received);
}

void MemoryDataMover::on_data_in(const Message& message) {
  auto entry = initiator_tasks_.find(message.itt);
  if (entry == initiator_tasks_.end()) {
    return close({Errc::protocol, fmt::format("{} sent data for ITT {:#x}, which is no task.",
                                              peer_, message.itt)});
  }
  InitiatorTask& task = entry->second;
  if (message.offset > task.read.size() || message.length > task.read.size() - message.offset) {
    return close({Errc::protocol, fmt::format("{} sent data beyond the end of a read.", peer_)});
  }
  const ConstBytes from = message.lent.empty() ? ConstBytes(message.data) : message.lent;
  std::copy(from.begin(), from.end(), task.read.begin() + static_cast<ptrdiff_t>(message.offset));
  task.data_in_bytes += from.size();
}

void MemoryDataMover::on_lent_read(const Message& message) {
  if (state_ != State::running || message.kind != Message::Kind::data_in) return;
  auto entry = target_tasks_.find(message.task);
  if (entry == target_tasks_.end() || entry->second.transfer != message.transfer ||
      !entry->second.moving || entry->second.done)
    return;
  transfer_over(message.task, entry->second);
}

void MemoryDataMover::on_r2t(const Message& message) {
  auto entry = initiator_tasks_.find(message.itt);
  if (entry == initiator_tasks_.end()) return;  // asked for before the response, which overtook it
  InitiatorTask& task = entry->second;
  if (message.offset > task.write.size() || message.length > task.write.size() - message.offset) {
    return close(
        {Errc::protocol, fmt::format("{} asked for data beyond the end of a write.", peer_)});
  }
  Message answer;
  answer.kind = Message::Kind::data_out;
  answer.opcode = iscsi::Opcode::data_out;
  answer.itt = message.itt;
  answer.task = message.task;
  answer.transfer = message.transfer;
  answer.offset = message.offset;
  fill(answer, task.write.subspan(message.offset, message.length));
  task.data_out_bytes += message.length;
  send(std::move(answer));
}

void MemoryDataMover::on_data_out(const Message& message) {
  auto entry = target_tasks_.find(message.task);
  if (entry == target_tasks_.end() || entry->second.transfer != message.transfer ||
      !entry->second.moving || entry->second.done) {
    return;  // for a transfer that was given up
  }
  TargetTask& task = entry->second;
  const ConstBytes from = message.lent.empty() ? ConstBytes(message.data) : message.lent;
  std::copy_n(from.begin(), std::min(from.size(), task.into.size()), task.into.begin());
  if (from.size() == task.into.size()) transfer_over(message.task, task);
}

MemoryPair make_memory_pair(Reactor& reactor, const MemoryLinkOptions& options,
                            const std::string& initiator_name, const std::string& target_name) {
  MemoryPair pair;
  pair.link = std::make_shared<MemoryLink>(reactor, options);
  pair.initiator = std::make_unique<MemoryDataMover>(reactor, pair.link, Role::initiator,
                                                     initiator_name, target_name, options.kind);
  pair.target = std::make_unique<MemoryDataMover>(reactor, pair.link, Role::target, target_name,
                                                  initiator_name, options.kind);
  return pair;
}

}  // namespace vjbod::transport
