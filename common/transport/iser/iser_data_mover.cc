// SPDX-License-Identifier: Apache-2.0
#include "common/transport/iser/iser_data_mover.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/iscsi/errc.h"
#include "common/iscsi/pdu_codec.h"
#include "common/transport/rdma_errc.h"

namespace vjbod::transport {

using iscsi::Errc;
using rdma::SendRequest;

namespace {

constexpr size_t message_bytes(uint32_t data_bytes) {
  return message_header_bytes + message_ahs_bytes_max + data_bytes;
}

// Of messages that wait for the device in full feature phase.
constexpr size_t small_messages = 192;
constexpr size_t target_large_messages = 8;       // text, NOP
constexpr size_t initiator_large_messages = 128;  // writes with immediate data

}  // namespace

Result<std::unique_ptr<IserDataMover>> IserDataMover::make(
    IserPlace& place, std::unique_ptr<rdma::Connection> connection, Role role,
    const Options& options) {
  auto domain = connection->domain();
  if (!domain) return fail(std::move(domain).error());
  const bool windows = role == Role::initiator && (*domain)->device().memory_windows;
  auto cache =
      place.cache(std::move(*domain), windows ? rdma::Access::window : rdma::Access::local);
  std::unique_ptr<IserDataMover> mover(
      new IserDataMover(place, std::move(connection), role, options, std::move(cache)));
  if (Status prepared = mover->prepare(); !prepared) return fail(std::move(prepared).error());
  return mover;
}

IserDataMover::IserDataMover(IserPlace& place, std::unique_ptr<rdma::Connection> connection,
                             Role role, const Options& options, std::shared_ptr<RegionCache> cache)
    : reactor_(place.reactor()),
      connection_(std::move(connection)),
      role_(role),
      options_(options),
      cache_(std::move(cache)),
      receives_(*connection_, message_bytes(options.data_segment_bytes)),
      messages_(options.data_segment_bytes),
      sends_(*connection_, options.queue_requests),
      target_tasks_(*cache_),
      initiator_tasks_(*cache_),
      timer_(reactor_,
             [this] {
               if (state_ == State::flushing)
                 close_now(reason_);
               else
                 release();
             }),
      cancel_timer_(reactor_, [this] { give_up_cancelled(); }) {}

IserDataMover::~IserDataMover() {
  VJBOD_CHECK(state_ == State::idle || state_ == State::closed,
              "mover to {} destroyed before on_closed", peer_);
  connection_->set_events(nullptr);
  if (!queue_gone_) connection_->destroy_queue();
}

Status IserDataMover::prepare() {
  rdma::Domain& domain = cache_->domain();
  const uint32_t receives = static_cast<uint32_t>(login_receives) + options_.receives;
  if (const uint32_t most = domain.device().queue_requests_max;
      most < std::max(receives, options_.queue_requests)) {
    return fail(RdmaErrc::no_resources, "The queues of {} have {} places, {} are needed.",
                domain.device().name, most, std::max(receives, options_.queue_requests));
  }
  Status made = connection_->make_queue({.sends = options_.queue_requests, .receives = receives});
  if (!made) return made;
  if (Status added = messages_.add(domain, 0, login_messages); !added) return added;
  return receives_.add(domain, login_receives);
}

CmPrivateData IserDataMover::private_data(const std::optional<CmPrivateData>& peer) const {
  CmPrivateData data;
  // A device without windows has keys that nobody can invalidate by a message.
  data.send_with_invalidate =
      peer ? peer->send_with_invalidate : cache_->domain().device().memory_windows;
  data.own = {.data_segment_bytes = options_.data_segment_bytes, .receives = options_.receives};
  return data;
}

void IserDataMover::established(const CmPrivateData& peer) {
  VJBOD_CHECK(state_ == State::idle);
  peer_ = connection_->peer();
  local_ = connection_->local();
  peer_own_ = peer.own;
  invalidates_remotely_ =
      role_ == Role::target ? peer.send_with_invalidate
                            : peer.send_with_invalidate && cache_->domain().device().memory_windows;
  connection_->set_events(this);
}

Capabilities IserDataMover::capabilities() const {
  Capabilities can;
  can.kind = Kind::iser;
  can.digests = false;
  can.rdma_extensions = true;
  can.requires_initial_r2t = true;
  can.max_recv_data_segment_length = options_.data_segment_bytes;
  if (peer_own_)
    can.peer_data_segment_length_max = peer_own_->data_segment_bytes;
  else if (role_ == Role::target)
    can.peer_data_segment_length_max = foreign_initiator_data_bytes;
  return can;
}

void IserDataMover::start(DataMoverEvents& events) {
  VJBOD_CHECK(state_ == State::idle);
  events_ = &events;
  state_ = State::running;
  poll_again_ = true;  // what came before anybody looked
  reactor_.defer(*this);
}

void IserDataMover::enable_full_feature(const iscsi::NegotiatedParameters& parameters,
                                        const SequenceNumbers&) {
  if (state_ != State::running) return;
  parameters_ = parameters;
  full_feature_ = true;
  rdma::Domain& domain = cache_->domain();
  const size_t large = role_ == Role::target ? target_large_messages : initiator_large_messages;
  // Posted before anything leaves: a target's last Login Response is still here.
  Status added = receives_.add(domain, options_.receives);
  if (added) added = messages_.add(domain, small_messages, large);
  if (!added) close_now(added.error());
}

// --- sending ---

void IserDataMover::send_control(const iscsi::Pdu& pdu, ConstBytes data) {
  VJBOD_CHECK(!std::holds_alternative<iscsi::ScsiCommand>(pdu), "commands go through begin_task");
  VJBOD_CHECK(is_from_initiator(pdu) == (role_ == Role::initiator));
  if (state_ != State::running || queue_gone_) return;
  VJBOD_CHECK(messages_.waiting_count() < control_queue_max,
              "more than {} PDUs wait to be sent to {}", control_queue_max, peer_);
  const size_t most =
      std::min<size_t>(parameters_.peer_max_recv_data_segment_length, options_.data_segment_bytes);
  if (data.size() > most) {
    return close_now({Errc::data_too_long,
                      fmt::format("A {} with {} bytes was to be sent to {}, which takes {}.",
                                  name_of(opcode_of(pdu)), data.size(), peer_, most)});
  }
  std::optional<uint32_t> invalidates;
  if (const auto* response = std::get_if<iscsi::ScsiResponse>(&pdu))
    if (invalidates_remotely_) invalidates = target_tasks_.key_to_invalidate(response->itt);
  send_message({}, pdu, data, invalidates, no_task);
}

TaskHandle IserDataMover::begin_task(const iscsi::ScsiCommand& command, ConstBytes write,
                                     Bytes read) {
  VJBOD_CHECK(role_ == Role::initiator);
  if (state_ != State::running) return no_task;
  VJBOD_CHECK(full_feature_, "a SCSI Command in the login phase");
  size_t immediate = 0;
  if (parameters_.immediate_data) {
    immediate = std::min<size_t>({write.size(), parameters_.first_burst_length,
                                  parameters_.peer_max_recv_data_segment_length,
                                  options_.data_segment_bytes});
  }
  auto begun = initiator_tasks_.begin(command.itt, write, read, immediate);
  if (!begun) {
    close_now(begun.error());
    return no_task;
  }
  iscsi::ScsiCommand sent = command;
  sent.final = true;  // InitialR2T is Yes: no unsolicited Data-Out follows
  if (begun->bind) sends_.queue(*begun->bind, {}, false);
  send_message(begun->header, sent, write.first(immediate), std::nullopt, begun->task);
  return begun->task;
}

void IserDataMover::send_message(const IserHeader& header, const iscsi::Pdu& pdu, ConstBytes data,
                                 std::optional<uint32_t> invalidates, TaskHandle task) {
  reactor_.defer(*this);
  const auto length = static_cast<uint32_t>(data.size());
  std::optional<MessagePool::Slot> slot;
  if (!messages_.anybody_waits()) slot = messages_.take(data.size());
  if (!slot) {
    MessagePool::Waiting& waiting = messages_.wait();
    write_message_headers(header, pdu, length, waiting.headers);
    waiting.data.assign(data.begin(), data.end());
    waiting.invalidates = invalidates;
    waiting.task = task;
    return;
  }
  write_message_headers(header, pdu, length, slot->memory);
  if (!data.empty())
    std::memcpy(slot->memory.data() + message_header_bytes, data.data(), data.size());
  queue_message(*slot, message_header_bytes + data.size(), invalidates, task);
}

void IserDataMover::queue_message(const MessagePool::Slot& slot, size_t bytes,
                                  std::optional<uint32_t> invalidates, TaskHandle task) {
  SendRequest request;
  request.kind = invalidates ? SendRequest::Kind::send_with_invalidate : SendRequest::Kind::send;
  request.memory = slot.memory.first(bytes);
  request.local_key = slot.local_key;
  request.remote_key = invalidates.value_or(0);
  const uint64_t number = sends_.queue(request, {SendQueue::Then::message, slot.number}, false);
  if (task != no_task) initiator_tasks_.find(task)->command_number = number;
}

void IserDataMover::move_waiting_messages() {
  while (messages_.anybody_waits()) {
    const MessagePool::Waiting& first = messages_.first_waiting();
    const auto slot = messages_.take(first.data.size());
    if (!slot) return;
    std::memcpy(slot->memory.data(), first.headers.data(), first.headers.size());
    if (!first.data.empty()) {
      std::memcpy(slot->memory.data() + message_header_bytes, first.data.data(), first.data.size());
    }
    queue_message(*slot, message_header_bytes + first.data.size(), first.invalidates, first.task);
    messages_.pop_waiting();
  }
}

void IserDataMover::post() {
  if (queue_gone_ || (state_ != State::running && state_ != State::flushing)) return;
  move_waiting_messages();
  Status posted = receives_.flush();
  if (posted) posted = sends_.post();
  if (!posted) close_now(posted.error());
}

// --- transfers ---

void IserDataMover::put_data(TaskHandle handle, uint64_t offset, ConstBytes data) {
  if (state_ != State::running || queue_gone_) return;
  VJBOD_CHECK(full_feature_, "data in the login phase");
  started(handle, target_tasks_.start_put(handle, offset, data, sends_));
}

void IserDataMover::get_data(TaskHandle handle, uint64_t offset, Bytes into) {
  if (state_ != State::running || queue_gone_) return;
  VJBOD_CHECK(full_feature_, "data in the login phase");
  started(handle, target_tasks_.start_get(handle, offset, into, sends_));
}

void IserDataMover::started(TaskHandle handle, const Status& status) {
  if (!status) return close_now(bad(status.error()));
  if (target_tasks_.get(handle).requests == 0) transfer_over(handle);
  reactor_.defer(*this);
}

void IserDataMover::transfer_over(TaskHandle handle) {
  target_tasks_.set_over(target_tasks_.get(handle));
  transfers_done_.push_back(handle);
  reactor_.defer(*this);
}

void IserDataMover::cancel_transfer(TaskHandle handle) {
  if (state_ != State::running || queue_gone_) return;
  const TargetTasks::Task& task = target_tasks_.get(handle);
  if (!task.moving || task.over) return;
  if (target_tasks_.request_over(handle, sends_.drop_transfer(handle)))
    return transfer_over(handle);
  // The device has the rest.
  cancelled_.push_back(handle);
  if (!cancel_timer_.armed()) cancel_timer_.arm_after(cancel_time_max);
}

// The peer does not take part: only without the queue is it certain that the memory is left alone.
void IserDataMover::give_up_cancelled() {
  if (state_ != State::running) return;
  const auto stuck = [this](TaskHandle handle) {
    const TargetTasks::Task* task = target_tasks_.find(handle);
    return task != nullptr && task->moving && !task->over;
  };
  std::erase_if(cancelled_, [&](TaskHandle handle) { return !stuck(handle); });
  if (cancelled_.empty()) return;
  connection_->destroy_queue();
  queue_gone_ = true;
  for (const TaskHandle handle : cancelled_) transfer_over(handle);
  cancelled_.clear();
  deliver_transfers_done();
  close_now(
      {Errc::timed_out,
       fmt::format("{} did not answer for {} ms, and a transfer to be given up was under way.",
                   peer_, cancel_time_max / std::chrono::milliseconds(1))});
}

void IserDataMover::end_task(TaskHandle handle) {
  if (state_ != State::running) return;
  target_tasks_.end(handle);
}

void IserDataMover::deliver_transfers_done() {
  for (size_t i = 0; i < transfers_done_.size() && state_ == State::running; ++i) {
    const TaskHandle handle = transfers_done_[i];
    target_tasks_.get(handle).moving = false;
    events_->on_transfer_done(handle);
  }
  transfers_done_.clear();
}

void IserDataMover::run_deferred() {
  deliver_transfers_done();
  if (std::exchange(poll_again_, false)) poll();
  post();
  close_if_flushed();
  if (state_ != State::closing) return;
  state_ = State::closed;
  connection_->set_events(nullptr);
  const Error reason = reason_;
  events_->on_closed(reason);  // this object may be gone now
}

// --- the end ---

void IserDataMover::on_cm(const rdma::CmReport& report) {
  Error why;
  switch (report.event) {
    case rdma::CmEvent::disconnected:
      why = {Errc::connection_lost, fmt::format("{} closed the connection.", peer_)};
      break;
    case rdma::CmEvent::device_removed:
      why = {RdmaErrc::device_removed,
             fmt::format("The RDMA device {} of the connection to {} was removed.",
                         cache_->domain().device().name, peer_)};
      break;
    case rdma::CmEvent::address_changed:
      why = {RdmaErrc::address_changed,
             fmt::format("The address {} has moved to another device; the connection to {} "
                         "cannot stay.",
                         local_, peer_)};
      break;
    default: return;
  }
  if (state_ == State::idle) {
    lost_before_start_ = why;
    return;
  }
  // The queue's error may be seen before its reason.
  if ((state_ == State::reaping || state_ == State::closing) &&
      reason_.code == Errc::connection_lost && report.event != rdma::CmEvent::disconnected)
    reason_ = why;
  // What the peer sent before it went (why it refused a login, perhaps) comes first.
  if (state_ == State::running) poll();
  close_now(state_ == State::flushing ? reason_ : why);
}

void IserDataMover::terminate(const Error& reason) {
  VJBOD_CHECK(state_ != State::idle, "terminate before start");
  if (state_ != State::running) return;
  if (queue_gone_ || (!messages_.anybody_waits() && messages_.under_way() == 0))
    return close_now(reason);
  reason_ = reason;
  state_ = State::flushing;
  timer_.arm_after(flush_time_max);
  reactor_.defer(*this);
}

void IserDataMover::close_if_flushed() {
  if (state_ != State::flushing || messages_.anybody_waits() || messages_.under_way() > 0) return;
  close_now(reason_);
}

void IserDataMover::close_now(const Error& reason) {
  if (state_ != State::running && state_ != State::flushing) return;
  state_ = State::reaping;
  if (&reason != &reason_) reason_ = reason;
  cancel_timer_.cancel();
  timer_.arm_after(reap_time_max);
  if (!queue_gone_) connection_->disconnect();
  poll_again_ = true;
  reactor_.defer(*this);
}

void IserDataMover::close_if_reaped() {
  if (state_ != State::reaping) return;
  if (queue_gone_ || (sends_.posted() == 0 && receives_.posted() == 0)) release();
}

// Whatever the device has not given back by now, it cannot use without the queue.
void IserDataMover::release() {
  if (state_ != State::reaping) return;
  state_ = State::closing;
  timer_.cancel();
  initiator_tasks_.clear_windows();
  if (!std::exchange(queue_gone_, true)) connection_->destroy_queue();
  initiator_tasks_.clear_regions();
  target_tasks_.clear_regions();
  receives_.clear();
  messages_.clear();
  reactor_.defer(*this);
}

Error IserDataMover::lost(std::string_view what) const {
  return {Errc::connection_lost, fmt::format("The connection to {} was lost: {}.", peer_, what)};
}

Error IserDataMover::bad(const Error& found) const {
  return {found.code, fmt::format("{} broke the protocol: {}.", peer_, found.text)};
}

}  // namespace vjbod::transport
