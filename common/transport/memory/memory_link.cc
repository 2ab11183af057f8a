// SPDX-License-Identifier: Apache-2.0
#include "common/transport/memory/memory_link.h"

#include <algorithm>
#include <utility>

#include "common/iscsi/errc.h"

namespace vjbod::transport {

namespace {

Error lost() {
  return {iscsi::Errc::connection_lost, "The memory link was severed."};
}

}  // namespace

MemoryLink::MemoryLink(Reactor& reactor, const MemoryLinkOptions& options)
    : reactor_(reactor),
      placement_(options.placement),
      to_target_(*this, reactor, options.delay_to_target, options.bytes_per_second),
      to_initiator_(*this, reactor, options.delay_to_initiator, options.bytes_per_second) {}

void MemoryLink::stall(Role from) {
  direction(from).stalled = true;
  direction(from).arrival.cancel();
}

void MemoryLink::resume(Role from) {
  direction(from).stalled = false;
  schedule(direction(from));
}

void MemoryLink::cut() {
  severed_ = true;
  for (Direction* each : {&to_target_, &to_initiator_}) {
    each->messages.clear();
    each->arrival.cancel();
  }
}

void MemoryLink::sever() {
  cut();
  for (Direction* each : {&to_target_, &to_initiator_})
    if (each->receiver != nullptr) each->receiver->on_severed(lost());
}

void MemoryLink::sever_unnoticed_by(Role unaware) {
  cut();
  MemoryLinkEnd* noticing = direction(unaware).receiver;
  if (noticing != nullptr) noticing->on_severed(lost());
}

size_t MemoryLink::waiting(Role from) const {
  return direction(from).messages.size();
}

size_t MemoryLink::control_waiting(Role from) const {
  const auto& messages = direction(from).messages;
  return static_cast<size_t>(std::count_if(
      messages.begin(), messages.end(),
      [](const MemoryMessage& message) { return message.kind == MemoryMessage::Kind::control; }));
}

void MemoryLink::send(Role from, MemoryMessage message) {
  if (severed_) return;
  Direction& way = direction(from);
  way.free_at = std::max(way.free_at, reactor_.now());
  if (way.bytes_per_second != 0) {
    const uint64_t bytes = message.header.size() + message.data.size() + message.lent.size();
    way.free_at += Duration(bytes * std::nano::den / way.bytes_per_second);
  }
  message.arrives_at = way.free_at + way.delay;
  // A delay that was made shorter must not let a message overtake.
  if (!way.messages.empty())
    message.arrives_at = std::max(message.arrives_at, way.messages.back().arrives_at);
  way.messages.push_back(std::move(message));
  schedule(way);
}

void MemoryLink::forget_lent(Role from, std::optional<uint32_t> itt) {
  auto& messages = direction(from).messages;
  std::vector<uint32_t> forgotten;
  for (auto it = messages.begin(); it != messages.end();) {
    const bool needs_memory = !it->lent.empty() && (!itt || *itt == it->itt);
    const bool speaks_of_it =
        it->opcode == iscsi::Opcode::scsi_response &&
        std::find(forgotten.begin(), forgotten.end(), it->itt) != forgotten.end();
    if (needs_memory) forgotten.push_back(it->itt);
    it = needs_memory || (speaks_of_it && !itt) ? messages.erase(it) : std::next(it);
  }
}

void MemoryLink::schedule(Direction& way) {
  if (way.stalled || way.messages.empty() || way.receiver == nullptr ||
      !way.receiver->ready_to_receive())
    return;
  const TimePoint at = std::max(way.messages.front().arrives_at, reactor_.now());
  if (!way.arrival.armed() || way.arrival.deadline() != at) way.arrival.arm_at(at);
}

bool MemoryLink::take(std::optional<iscsi::Opcode>& fault, const MemoryMessage& message) {
  if (message.kind == MemoryMessage::Kind::close || fault != message.opcode) return false;
  fault.reset();
  return true;
}

void MemoryLink::deliver(Direction& way) {
  bool any = false;
  while (!way.stalled && way.receiver != nullptr && !way.messages.empty() &&
         way.messages.front().arrives_at <= reactor_.now()) {
    if (take(hold_next_, way.messages.front())) {
      way.stalled = true;
      break;
    }
    MemoryMessage message = std::move(way.messages.front());
    way.messages.pop_front();
    if (take(drop_next_, message)) continue;
    any = true;
    if (take(sever_during_next_, message)) {
      message.length /= 2;
      if (message.lent.empty())
        message.data.resize(message.data.size() / 2);
      else
        message.lent = message.lent.first(message.lent.size() / 2);
      way.receiver->on_message(message);
      sever();
      return;
    }
    way.receiver->on_message(message);
    if (!message.lent.empty() && sender_of(way) != nullptr) sender_of(way)->on_lent_read(message);
  }
  if (any && way.receiver != nullptr) way.receiver->on_messages_taken();
  schedule(way);
}

}  // namespace vjbod::transport
