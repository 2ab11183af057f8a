// SPDX-License-Identifier: Apache-2.0
// What an iSER mover does with what its queue reports: requests that are done, messages that came.
#include <array>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/iscsi/errc.h"
#include "common/iscsi/pdu_codec.h"
#include "common/transport/iser/iser_data_mover.h"
#include "common/transport/rdma_errc.h"

namespace vjbod::transport {

using iscsi::Errc;
using rdma::Completion;
using Then = SendQueue::Then;

void IserDataMover::on_completions() {
  armed_ = false;
  poll();
  post();
  close_if_flushed();
}

void IserDataMover::poll() {
  std::array<Completion, 32> batch;
  size_t taken = 0;
  while (!queue_gone_ && state_ != State::closing && state_ != State::closed) {
    if (taken >= completions_per_turn_max) {
      poll_again_ = true;
      reactor_.defer(*this);
      break;
    }
    const size_t count = connection_->poll(batch);
    for (size_t i = 0; i < count; ++i) take_completion(batch[i]);
    taken += count;
    deliver_arrived();
    deliver_transfers_done();
    if (count == batch.size()) continue;
    if (armed_ || queue_gone_) break;
    armed_ = true;
    connection_->arm();  // and look once more, for what came before that
  }
  if (std::exchange(alive_, false) && state_ == State::running) events_->on_peer_alive();
  if (lost_before_start_ && state_ == State::running) close_now(*lost_before_start_);
  close_if_reaped();
}

void IserDataMover::take_completion(const Completion& completion) {
  if (completion.receive) {
    receives_.completed();
    if (state_ == State::reaping) return;
    if (completion.status != Completion::Status::success) return take_failure(completion);
    if (state_ == State::running) arrived(completion);
    return;
  }
  finish_requests(completion.id);
  if (completion.status != Completion::Status::success) take_failure(completion);
}

void IserDataMover::take_failure(const Completion& completion) {
  if (state_ != State::running && state_ != State::flushing) return;
  deliver_arrived();  // it came before
  if (state_ == State::flushing) return close_now(reason_);
  const int vendor = completion.vendor_status;
  switch (completion.status) {
    case Completion::Status::success: return;
    case Completion::Status::flushed:
      return close_now({Errc::connection_lost, fmt::format("{} closed the connection.", peer_)});
    case Completion::Status::local_length:
      return close_now(bad({RdmaErrc::bad_length,
                            fmt::format("it sent a message longer than the {} bytes of data that "
                                        "were declared to it",
                                        options_.data_segment_bytes)}));
    case Completion::Status::remote_access:
      return close_now({RdmaErrc::transfer_failed,
                        fmt::format("{} refused a transfer to or from the memory that it lent "
                                    "(device status {:#x}).",
                                    peer_, vendor)});
    case Completion::Status::retries: return close_now(lost("it does not answer any more"));
    case Completion::Status::receiver_not_ready:
      return close_now(lost("it takes no messages any more"));
    case Completion::Status::other: break;
  }
  close_now({RdmaErrc::transfer_failed,
             fmt::format("The RDMA device {} failed a request of the connection to {} (device "
                         "status {:#x}).",
                         cache_->domain().device().name, peer_, vendor)});
}

// Also of those that failed: nothing of theirs is with the device any more.
void IserDataMover::finish_requests(uint64_t id) {
  SendQueue::Done done;
  while (sends_.next_done(id, done)) {
    switch (done.then) {
      case Then::nothing: break;
      case Then::message: messages_.give_back(done.value); break;
      case Then::transfer:
        if (!target_tasks_.request_over(done.value)) break;
        if (state_ == State::running && !target_tasks_.get(done.value).over)
          transfer_over(done.value);
        break;
      case Then::invalidation:
        if (state_ == State::running) initiator_tasks_.invalidated(done.value);
        break;
    }
  }
}

// --- messages ---

// A response's invalidation begins now, also when others are to be delivered before.
void IserDataMover::arrived(const Completion& completion) {
  alive_ = true;
  Arrived& entry = arrived_.push_back();
  entry = {.receive = completion.id, .bytes = completion.bytes, .invalidating = no_task};
  if (role_ == Role::target) {
    if (completion.invalidated) {
      close_now(
          bad({RdmaErrc::bad_key,
               fmt::format("it invalidated the key {:#x}; a target lends none", completion.key)}));
    }
    return;
  }
  const auto bytes = receives_.message(completion.id, completion.bytes);
  if (!bytes) return close_now(bad(bytes.error()));
  const auto message = parse_message(*bytes, options_.data_segment_bytes);
  if (!message) return;  // refused when its turn comes
  const TaskHandle handle = answered_task(completion, *message);
  if (state_ != State::running || handle == no_task) return;
  if (completion.invalidated && initiator_tasks_.was_invalidated(handle, completion.key)) return;
  if (const auto request = initiator_tasks_.invalidate(handle)) {
    sends_.queue(*request, {Then::invalidation, handle}, true);
    entry.invalidating = handle;
  }
}

// The task that this message ends; an error closes.
TaskHandle IserDataMover::answered_task(const Completion& completion, const Message& message) {
  const auto* response = std::get_if<iscsi::ScsiResponse>(&message.pdu);
  const TaskHandle handle = response != nullptr ? initiator_tasks_.handle_of(response->itt) : 0;
  InitiatorTasks::Task* task = initiator_tasks_.find(handle);
  if (completion.invalidated) {
    const bool own = invalidates_remotely_ && task != nullptr && task->bound &&
                     task->key == completion.key && !task->answered;
    if (!own) {
      close_now(bad({RdmaErrc::bad_key,
                     fmt::format("it invalidated the key {:#x}, which is not that of the command "
                                 "it answers",
                                 completion.key)}));
      return no_task;
    }
  }
  if (response == nullptr) return no_task;
  if (task == nullptr || task->answered || task->command_number == 0 ||
      !sends_.is_posted(task->command_number)) {
    close_now(bad({Errc::protocol,
                   fmt::format("SCSI Response for ITT {:#x}, which is no task", response->itt)}));
    return no_task;
  }
  task->answered = true;
  return handle;
}

void IserDataMover::deliver_arrived() {
  while (state_ == State::running && !queue_gone_ && !arrived_.empty()) {
    const Arrived first = arrived_.front();
    if (first.invalidating != no_task) {
      const InitiatorTasks::Task* task = initiator_tasks_.find(first.invalidating);
      if (task != nullptr && task->bound) return;
    }
    arrived_.pop_front();
    const auto bytes = receives_.message(first.receive, first.bytes);
    if (!bytes) return close_now(bad(bytes.error()));
    const auto message = parse_message(*bytes, options_.data_segment_bytes);
    if (!message) return close_now(bad(message.error()));
    deliver(*message);
    if (state_ != State::running || queue_gone_) return;
    if (Status reposted = receives_.repost(first.receive); !reposted)
      return close_now(reposted.error());
  }
}

void IserDataMover::deliver(const Message& message) {
  if (is_from_initiator(message.pdu) == (role_ == Role::initiator)) {
    return close_now(
        {Errc::wrong_direction, fmt::format("{} sent a {}, which only the other end may send.",
                                            peer_, name_of(opcode_of(message.pdu)))});
  }
  ReceivedControl received;
  received.pdu = message.pdu;
  received.data = message.data;
  received.header_bytes = message.bhs;
  if (std::holds_alternative<iscsi::ScsiCommand>(message.pdu))
    return deliver_command(message, received);
  if (const auto* response = std::get_if<iscsi::ScsiResponse>(&message.pdu))
    if (!deliver_response(*response, received)) return;
  events_->on_control(received);
}

void IserDataMover::deliver_command(const Message& message, ReceivedControl& received) {
  const auto& command = std::get<iscsi::ScsiCommand>(message.pdu);
  if (!full_feature_) {
    return close_now(
        bad({RdmaErrc::out_of_state, "a SCSI Command came before the login was over"}));
  }
  received.task = target_tasks_.begin(command, message.header, message.data.size());
  if (received.task == no_task) {
    return close_now({Errc::protocol, fmt::format("{} sent more than {} commands at once.", peer_,
                                                  TargetTasks::tasks_max)});
  }
  events_->on_control(received);
}

bool IserDataMover::deliver_response(const iscsi::ScsiResponse& response,
                                     ReceivedControl& received) {
  const TaskHandle handle = initiator_tasks_.handle_of(response.itt);
  const InitiatorTasks::Task* found = initiator_tasks_.find(handle);
  VJBOD_CHECK(found != nullptr && found->answered);
  const InitiatorTasks::Task task = initiator_tasks_.finish(handle);
  // RDMA says nothing of what the target moved; its residual does.
  uint64_t moved = task.bytes;
  if (response.underflow) {
    if (response.residual_count > task.bytes) {
      close_now(bad({Errc::bad_field, fmt::format("it left {} of {} bytes of a command",
                                                  response.residual_count, task.bytes)}));
      return false;
    }
    moved -= response.residual_count;
  }
  (task.reads ? received.data_in_bytes : received.data_out_bytes) = moved;
  return true;
}

}  // namespace vjbod::transport
