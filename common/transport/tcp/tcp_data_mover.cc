// SPDX-License-Identifier: Apache-2.0
#include "common/transport/tcp/tcp_data_mover.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/iscsi/errc.h"
#include "common/iscsi/pdu_codec.h"

namespace vjbod::transport {

using iscsi::Errc;
using iscsi::Framer;

namespace {

constexpr size_t login_buffer_bytes = 16 * 1024;
static_assert(login_buffer_bytes >= iscsi::pdu_bytes_max(8192));
// After a large data segment, that many PDUs without one make small reads end.
constexpr int large_segments_memory = 4;

}  // namespace

TcpDataMover::TcpDataMover(Reactor& reactor, std::unique_ptr<ByteStream> stream, Role role)
    : reactor_(reactor),
      stream_(std::move(stream)),
      role_(role),
      peer_(stream_->peer()),
      local_(stream_->local()),
      sender_(target_tasks_, initiator_tasks_),
      receive_buffer_(std::make_unique_for_overwrite<std::byte[]>(login_buffer_bytes)),
      framer_({receive_buffer_.get(), login_buffer_bytes}),
      flush_timer_(reactor, [this] { close_now(reason_); }) {}

TcpDataMover::~TcpDataMover() {
  VJBOD_CHECK(state_ == State::idle || state_ == State::closed,
              "mover to {} destroyed before on_closed", peer_);
  if (state_ == State::idle) stream_->close();
}

void TcpDataMover::start(DataMoverEvents& events) {
  VJBOD_CHECK(state_ == State::idle);
  events_ = &events;
  state_ = State::running;
  stream_->set_events(*this);
  stream_->wait_readable();
}

void TcpDataMover::enable_full_feature(const iscsi::NegotiatedParameters& parameters,
                                       const SequenceNumbers& numbers) {
  if (state_ != State::running) return;
  parameters_ = parameters;
  full_feature_ = true;
  parameters_changed_ = true;
  sender_.enable_full_feature(parameters, numbers);
  if (!in_upcall_of_pdu_) adopt_parameters();
}

// The buffer may change only when nobody looks at a PDU in it.
void TcpDataMover::adopt_parameters() {
  if (!parameters_changed_) return;
  parameters_changed_ = false;
  const size_t size = std::max(iscsi::pdu_bytes_max(parameters_.our_max_recv_data_segment_length),
                               receive_buffer_bytes);
  auto larger = std::make_unique_for_overwrite<std::byte[]>(size);
  framer_.use_buffer({larger.get(), size});
  receive_buffer_ = std::move(larger);
  Framer::Rules rules;
  rules.header_digest = parameters_.header_digest;
  rules.data_digest = parameters_.data_digest;
  rules.data_segment_length_max = parameters_.our_max_recv_data_segment_length;
  framer_.set_rules(rules);
}

// --- sending ---

void TcpDataMover::send_control(const iscsi::Pdu& pdu, ConstBytes data) {
  VJBOD_CHECK(!std::holds_alternative<iscsi::ScsiCommand>(pdu), "commands go through begin_task");
  VJBOD_CHECK(is_from_initiator(pdu) == (role_ == Role::initiator));
  if (state_ != State::running || write_failed_) return;
  VJBOD_CHECK(sender_.control_waiting() < control_queue_max,
              "more than {} PDUs wait to be sent to {}", control_queue_max, peer_);
  if (data.size() > parameters_.peer_max_recv_data_segment_length) {
    return close_now({Errc::data_too_long,
                      fmt::format("A {} with {} bytes was to be sent to {}, which takes {}.",
                                  name_of(opcode_of(pdu)), data.size(), peer_,
                                  parameters_.peer_max_recv_data_segment_length)});
  }
  sender_.queue_control(pdu, data);
  reactor_.defer(*this);
}

TaskHandle TcpDataMover::begin_task(const iscsi::ScsiCommand& command, ConstBytes write,
                                    Bytes read) {
  VJBOD_CHECK(role_ == Role::initiator);
  if (state_ != State::running) return no_task;
  VJBOD_CHECK(full_feature_, "a SCSI Command in the login phase");
  const TaskHandle handle = initiator_tasks_.begin_task(command.itt, write, read);
  size_t immediate = 0;
  if (parameters_.immediate_data) {
    immediate = std::min<size_t>({write.size(), parameters_.first_burst_length,
                                  parameters_.peer_max_recv_data_segment_length});
  }
  initiator_tasks_.get(handle).data_out_bytes = immediate;
  iscsi::ScsiCommand sent = command;
  sent.final = true;  // InitialR2T is Yes: no unsolicited Data-Out follows
  sender_.queue_command(handle, sent, write.first(immediate));
  reactor_.defer(*this);
  return handle;
}

void TcpDataMover::put_data(TaskHandle handle, uint64_t offset, ConstBytes data) {
  if (state_ != State::running) return;
  VJBOD_CHECK(full_feature_, "data in the login phase");
  TargetTransferTable::Task& task = target_tasks_.get(handle);
  target_tasks_.start_put(task);
  sender_.queue_put(task, offset, data);
  if (task.over) transfers_done_.push_back(handle);
  reactor_.defer(*this);
}

void TcpDataMover::get_data(TaskHandle handle, uint64_t offset, Bytes into) {
  if (state_ != State::running) return;
  VJBOD_CHECK(full_feature_, "data in the login phase");
  TargetTransferTable::Task& task = target_tasks_.get(handle);
  target_tasks_.start_get(task, offset, into);
  if (into.empty())
    transfer_over(handle);
  else
    sender_.queue_r2t(handle);
  reactor_.defer(*this);
}

void TcpDataMover::transfer_over(TaskHandle handle) {
  target_tasks_.set_over(target_tasks_.get(handle));
  transfers_done_.push_back(handle);
  reactor_.defer(*this);
}

void TcpDataMover::cancel_transfer(TaskHandle handle) {
  if (state_ != State::running) return;
  const TargetTransferTable::Task& task = target_tasks_.get(handle);
  if (task.moving == TargetTransferTable::Moving::none || task.over) return;
  sender_.give_back(handle);
  if (placing_ == handle) {
    framer_.forget_placed_data();
    placing_ = no_task;
  }
  transfer_over(handle);
}

void TcpDataMover::end_task(TaskHandle handle) {
  if (state_ != State::running) return;
  target_tasks_.end_task(handle);
}

uint32_t TcpDataMover::data_sequence_count(TaskHandle handle) const {
  const TargetTransferTable::Task* task = target_tasks_.find(handle);
  return task == nullptr ? 0 : task->sequence_count;
}

void TcpDataMover::deliver_transfers_done() {
  for (size_t i = 0; i < transfers_done_.size() && state_ == State::running; ++i) {
    const TaskHandle handle = transfers_done_[i];
    TargetTransferTable::Task& task = target_tasks_.get(handle);
    task.moving = TargetTransferTable::Moving::none;
    events_->on_transfer_done(handle);
  }
  transfers_done_.clear();
}

void TcpDataMover::run_deferred() {
  reads_begun_bytes_ = 0;
  deliver_transfers_done();
  flush();
  if (state_ != State::closing) return;
  state_ = State::closed;
  const Error reason = reason_;
  events_->on_closed(reason);  // this object may be gone now
}

void TcpDataMover::on_writable() {
  write_blocked_ = false;
  flush();
}

void TcpDataMover::flush() {
  for (int writes = 0; !write_blocked_ && !write_failed_; ++writes) {
    if (state_ != State::running && state_ != State::flushing) return;
    if (!sender_.fill()) {
      flushed();
      break;
    }
    if (writes == writes_per_turn_max) return reactor_.defer(*this);
    const IoResult result = stream_->write_some(sender_.batch().unsent());
    switch (result.kind) {
      case IoResult::Kind::moved:
        sender_.batch().sent(result.bytes);
        if (sender_.batch().all_sent()) finish_batch();
        break;
      case IoResult::Kind::would_block:
        write_blocked_ = true;
        stream_->wait_writable();
        break;
      case IoResult::Kind::ended:
      case IoResult::Kind::failed:
        if (state_ == State::flushing) return close_now(reason_);
        // What the peer sent before it went (why it refused a login, perhaps) is still to be read;
        // the end of that closes.
        write_failed_ = true;
        reading_paused_ = false;
        reason_ = lost(std::strerror(result.error_number));
        return receive();
    }
  }
  if (reading_paused_ && state_ == State::running && !sender_.crowded()) {
    reading_paused_ = false;
    receive();
  }
}

void TcpDataMover::finish_batch() {
  for (const TaskHandle handle : sender_.batch().done()) {
    target_tasks_.set_over(target_tasks_.get(handle));
    transfers_done_.push_back(handle);
  }
  sender_.batch_sent();
  deliver_transfers_done();
}

// --- receiving ---

void TcpDataMover::on_readable() {
  if (state_ == State::lingering) return linger();
  receive();
}

void TcpDataMover::receive() {
  if (state_ != State::running || reading_paused_) return;
  bool alive = false;
  // What was left over when reading was paused comes first.
  Parsed parsed = parse();
  for (int reads = 0; parsed == Parsed::starved; ++reads) {
    if (reads == reads_per_turn_max) {
      stream_->wait_readable();
      break;
    }
    const Framer::ReceiveSpace space = large_segments_likely_ > 0
                                           ? framer_.receive_space(small_read_bytes)
                                           : framer_.receive_space();
    const IoResult result = stream_->read_some(space.placed, space.buffered);
    if (result.kind == IoResult::Kind::would_block) {
      if (write_failed_) return close_now(reason_);
      stream_->wait_readable();
      break;
    }
    if (result.kind == IoResult::Kind::ended)
      return close_now({Errc::connection_lost, fmt::format("{} closed the connection.", peer_)});
    if (result.kind == IoResult::Kind::failed)
      return close_now(lost(std::strerror(result.error_number)));
    alive = true;
    framer_.received(result.bytes);
    parsed = parse();
    if (parsed == Parsed::starved && result.bytes < space.placed.size() + space.buffered.size() &&
        !write_failed_) {
      stream_->wait_readable();  // nothing more is there now
      break;
    }
  }
  if (alive && state_ == State::running) events_->on_peer_alive();
}

TcpDataMover::Parsed TcpDataMover::parse() {
  while (state_ == State::running) {
    if (sender_.crowded() && !write_failed_) {
      reading_paused_ = true;
      break;
    }
    if (reads_begun_bytes_ >= reads_begun_per_turn_bytes) {
      reading_paused_ = true;
      reactor_.defer(*this);
      break;
    }
    adopt_parameters();
    Result<Framer::Event> event = framer_.next();
    if (!event) {
      close_now(bad(event.error()));
      break;
    }
    if (*event == Framer::Event::starved) return Parsed::starved;
    if (*event == Framer::Event::header) {
      on_header();
    } else {
      on_pdu();
      deliver_transfers_done();
    }
  }
  return Parsed::stopped;
}

void TcpDataMover::on_header() {
  Result<iscsi::Pdu> decoded = iscsi::decode_bhs(framer_.bhs());
  unknown_opcode_ = !decoded && role_ == Role::target && full_feature_ &&
                    iscsi::is_from_initiator(iscsi::bhs_opcode(framer_.bhs()));
  if (unknown_opcode_) return framer_.drop_data();
  if (!decoded) return close_now(bad(decoded.error()));
  pdu_ = *decoded;
  if (is_from_initiator(pdu_) == (role_ == Role::initiator)) {
    return close_now(
        {Errc::wrong_direction, fmt::format("{} sent a {}, which only the other end may send.",
                                            peer_, name_of(opcode_of(pdu_)))});
  }
  if (large_segments_likely_ > 0) --large_segments_likely_;
  if (const auto* data_in = std::get_if<iscsi::DataIn>(&pdu_)) {
    const auto place = initiator_tasks_.place(*data_in);
    if (!place) return close_now(bad(place.error()));
    if (data_in->has_status) std::ranges::copy(framer_.bhs(), status_header_.begin());
    if (!place->destination.empty()) this->place(place->destination);
  } else if (const auto* data_out = std::get_if<iscsi::DataOut>(&pdu_)) {
    const auto place = target_tasks_.place(*data_out);
    if (!place) return close_now(bad(place.error()));
    placing_ = place->task;
    if (placing_ != no_task)
      this->place(place->destination);
    else
      framer_.drop_data();
  }
}

void TcpDataMover::place(Bytes destination) {
  if (destination.size() >= large_segment_bytes) large_segments_likely_ = large_segments_memory;
  framer_.place_data(destination);
}

void TcpDataMover::on_pdu() {
  if (unknown_opcode_) {
    in_upcall_of_pdu_ = true;
    events_->on_unknown_opcode(framer_.bhs());
    in_upcall_of_pdu_ = false;
    return;
  }
  if (const auto* data_in = std::get_if<iscsi::DataIn>(&pdu_)) return on_data_in(*data_in);
  if (std::holds_alternative<iscsi::DataOut>(pdu_)) return on_data_out();
  if (const auto* r2t = std::get_if<iscsi::R2t>(&pdu_)) return on_r2t(*r2t);
  if (const auto* response = std::get_if<iscsi::ScsiResponse>(&pdu_))
    return on_scsi_response(*response, framer_.bhs());
  ReceivedControl received;
  if (const auto* command = std::get_if<iscsi::ScsiCommand>(&pdu_)) {
    received.task = target_tasks_.begin_task(command->itt, command->lun);
    if (received.task == no_task) {
      return close_now({Errc::protocol, fmt::format("{} sent more than {} commands at once.", peer_,
                                                    TargetTransferTable::tasks_max)});
    }
    if (command->read) reads_begun_bytes_ += command->expected_data_transfer_length;
  }
  received.pdu = pdu_;
  received.header_bytes = framer_.bhs();
  deliver_control(received);
}

void TcpDataMover::deliver_control(ReceivedControl& received) {
  received.data = framer_.data();
  in_upcall_of_pdu_ = true;
  events_->on_control(received);
  in_upcall_of_pdu_ = false;
}

void TcpDataMover::on_data_out() {
  const TaskHandle handle = std::exchange(placing_, no_task);
  if (handle == no_task) return;
  switch (target_tasks_.placed(handle, framer_.data_segment_length())) {
    case TargetTransferTable::Next::wait: return;
    case TargetTransferTable::Next::ask:
      sender_.queue_r2t(handle);
      reactor_.defer(*this);
      return;
    case TargetTransferTable::Next::done: transfers_done_.push_back(handle); return;
  }
}

// A Data-In with status is the SCSI Response too (RFC 7143 section 11.7.3).
void TcpDataMover::on_data_in(const iscsi::DataIn& pdu) {
  if (!pdu.has_status) return;
  if (!pdu.final) {
    return close_now(
        bad({Errc::bad_field,
             fmt::format("Data-In with status, but not the last, for ITT {:#x}", pdu.itt)}));
  }
  iscsi::ScsiResponse response;
  response.overflow = pdu.overflow;
  response.underflow = pdu.underflow;
  response.status = pdu.status;
  response.itt = pdu.itt;
  response.stat_sn = pdu.stat_sn;
  response.exp_cmd_sn = pdu.exp_cmd_sn;
  response.max_cmd_sn = pdu.max_cmd_sn;
  response.exp_data_sn = pdu.data_sn + 1;
  response.residual_count = pdu.residual_count;
  on_scsi_response(response, status_header_);
}

void TcpDataMover::on_r2t(const iscsi::R2t& pdu) {
  const Result<TaskHandle> handle = initiator_tasks_.accept_r2t(pdu, parameters_.max_burst_length);
  if (!handle) return close_now(bad(handle.error()));
  sender_.queue_data_out(*handle, pdu);
  reactor_.defer(*this);
}

void TcpDataMover::on_scsi_response(const iscsi::ScsiResponse& pdu, ConstBytes header_bytes) {
  const TaskHandle handle = initiator_tasks_.handle_of(pdu.itt);
  const auto task = initiator_tasks_.take_finished(pdu.itt, "SCSI Response");
  if (!task) return close_now(bad(task.error()));
  // A response that did not wait for the data: nothing of the write memory may be read any more.
  if (!task->write.empty()) sender_.give_back(handle);
  ReceivedControl received;
  received.pdu = pdu;
  received.header_bytes = header_bytes;
  received.data_in_bytes = task->data_in_bytes;
  received.data_out_bytes = task->data_out_bytes;
  deliver_control(received);
}

// --- the end ---

Error TcpDataMover::lost(std::string_view what) const {
  return {Errc::connection_lost, fmt::format("The connection to {} was lost: {}.", peer_, what)};
}

Error TcpDataMover::bad(const Error& found) const {
  return {found.code, fmt::format("{} broke the protocol: {}.", peer_, found.text)};
}

void TcpDataMover::terminate(const Error& reason) {
  VJBOD_CHECK(state_ != State::idle, "terminate before start");
  if (state_ != State::running) return;
  if (write_failed_ || !sender_.must_flush()) return close_now(reason);
  reason_ = reason;
  state_ = State::flushing;
  sender_.drop_transfers();
  flush_timer_.arm_after(flush_time_max);
  reactor_.defer(*this);
}

// All that was queued has been handed to the kernel.
void TcpDataMover::flushed() {
  if (state_ != State::flushing) return;
  state_ = State::lingering;
  stream_->shutdown_send();
  stream_->wait_readable();
}

void TcpDataMover::linger() {
  std::array<std::byte, 4096> discarded;
  for (int reads = 0; reads < reads_per_turn_max; ++reads) {
    const IoResult result = stream_->read_some(discarded, {});
    if (result.kind == IoResult::Kind::would_block) break;
    if (result.kind != IoResult::Kind::moved) return close_now(reason_);
  }
  stream_->wait_readable();
}

void TcpDataMover::close_now(const Error& reason) {
  if (state_ == State::closing || state_ == State::closed) return;
  state_ = State::closing;
  if (&reason != &reason_) reason_ = reason;
  flush_timer_.cancel();
  stream_->close();
  reactor_.defer(*this);
}

}  // namespace vjbod::transport
