// SPDX-License-Identifier: Apache-2.0
#include "target/scsi/logical_unit.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "target/scsi/nexus_mailbox.h"

namespace vjbod::scsi {

uint64_t naa_of(const UnitUuid& uuid) {
  constexpr uint64_t locally_assigned = uint64_t{3} << 60;
  return locally_assigned | (load_big_endian<uint64_t>(&uuid[8]) & ~(uint64_t{0xf} << 60));
}

std::string serial_of(const UnitUuid& uuid) {
  return fmt::format("{:016x}", load_big_endian<uint64_t>(&uuid[0]));
}

std::shared_ptr<LogicalUnit> LogicalUnit::make(Options options) {
  VJBOD_CHECK(options.backstore != nullptr && options.home != nullptr);
  return std::shared_ptr<LogicalUnit>(new LogicalUnit(std::move(options)));
}

LogicalUnit::LogicalUnit(Options options)
    : uuid_(options.uuid),
      read_only_(options.read_only || options.backstore->capabilities().read_only),
      cache_id_(std::move(options.cache_id)),
      backstore_(std::move(options.backstore)),
      home_(*options.home) {}

vjbod::Status LogicalUnit::resize(uint64_t size_bytes) {
  vjbod::Status resized = backstore_->resize(size_bytes);
  if (resized) announce_capacity_change();
  return resized;
}

void LogicalUnit::announce_capacity_change() {
  home_.post([self = shared_from_this()] {
    for (const auto& nexus : self->nexuses_) {
      nexus->post([self](NexusMessages& messages) { messages.on_capacity_changed(*self); });
    }
  });
}

std::error_code LogicalUnit::flush_error() const {
  const int error = flush_errno_.load(std::memory_order_acquire);
  return error == 0 ? std::error_code{} : system_code(error);
}

void LogicalUnit::set_flush_error(std::error_code error) {
  int none = 0;
  if (!flush_errno_.compare_exchange_strong(none, error.value(), std::memory_order_acq_rel)) return;
  PrefixLogger(fmt::format("lun {}", serial()))
      .error(
          "flushing to stable storage failed ({}): acknowledged data may be lost, and every flush "
          "of this LUN fails until the target is restarted",
          error.message());
}

void LogicalUnit::attach(std::shared_ptr<NexusMailbox> nexus) {
  home_.post([self = shared_from_this(), nexus = std::move(nexus)] {
    self->nexuses_.push_back(nexus);
    // It read the size before it was on the list: a resize in between told it nothing.
    nexus->post([self](NexusMessages& messages) { messages.on_capacity_changed(*self); });
  });
}

void LogicalUnit::detach(std::shared_ptr<NexusMailbox> nexus) {
  home_.post([self = shared_from_this(), nexus = std::move(nexus)] {
    auto& all = self->nexuses_;
    const auto position = std::find(all.begin(), all.end(), nexus);
    VJBOD_CHECK(position != all.end(), "a nexus detaches twice");
    all.erase(position);
  });
}

void LogicalUnit::reset_others(std::shared_ptr<NexusMailbox> origin,
                               std::shared_ptr<ResetBarrier> barrier) {
  home_.post([self = shared_from_this(), origin = std::move(origin), barrier = std::move(barrier)] {
    for (const auto& nexus : self->nexuses_) {
      if (nexus == origin) continue;
      nexus->post(
          [self, barrier](NexusMessages& messages) { messages.on_unit_reset(*self, barrier); });
    }
  });
}

}  // namespace vjbod::scsi
