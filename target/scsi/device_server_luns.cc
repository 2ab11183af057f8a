// SPDX-License-Identifier: Apache-2.0
// How the LUNs of a nexus change while it is in use.
#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/check.h"
#include "target/scsi/device_server.h"

namespace vjbod::scsi {

namespace {

vjbod::Status check_mappings(const std::vector<LunMapping>& luns) {
  const auto invalid = std::make_error_code(std::errc::invalid_argument);
  if (luns.size() > mapped_luns_max) {
    return fail(invalid, "{} LUNs for one initiator, the limit is {}", luns.size(),
                mapped_luns_max);
  }
  for (auto one = luns.begin(); one != luns.end(); ++one) {
    if (one->number > lun_number_max) {
      return fail(invalid, "LUN number {}, the limit is {}", one->number, lun_number_max);
    }
    VJBOD_CHECK(one->unit != nullptr, "LUN {} without a logical unit", one->number);
    for (auto other = luns.begin(); other != one; ++other) {
      if (other->number == one->number) {
        return fail(invalid, "LUN {} is given out twice to one initiator", one->number);
      }
      if (other->unit == one->unit) {
        return fail(invalid, "LUN {} and LUN {} of one initiator are the same disk", other->number,
                    one->number);
      }
    }
  }
  return {};
}

}  // namespace

vjbod::Status DeviceServer::set_luns(std::vector<LunMapping> luns) {
  if (draining_) return {};
  if (auto checked = check_mappings(luns); !checked) return checked;

  std::vector<std::unique_ptr<MappedUnit>> added;
  for (const LunMapping& mapping : luns) {
    const MappedUnit* present = luns_.find(mapping.number);
    if (present != nullptr && present->unit == mapping.unit) continue;
    auto queue = mapping.unit->backstore().open_queue(reactor_);
    if (!queue) return fail(std::move(queue).error());
    added.push_back(std::make_unique<MappedUnit>(mapping.number, mapping.unit, mapping.read_only,
                                                 std::move(*queue)));
  }

  const bool changed = remove_units_not_in(luns) || !added.empty();
  for (const LunMapping& mapping : luns) {
    MappedUnit* const kept = luns_.find(mapping.number);
    if (kept == nullptr) continue;
    const bool read_only = mapping.read_only || mapping.unit->read_only();
    if (std::exchange(kept->read_only, read_only) != read_only) {
      kept->attentions.raise(UnitAttention::mode_parameters_changed);
    }
  }
  if (changed) {
    for (const auto& unit : luns_.units()) {
      unit->attentions.raise(UnitAttention::reported_luns_changed);
    }
  }
  for (auto& unit : added) {
    unit->attentions.raise(UnitAttention::power_on_or_reset);
    unit->unit->attach(mailbox_);
    luns_.add(std::move(unit));
  }
  return {};
}

bool DeviceServer::remove_units_not_in(const std::vector<LunMapping>& luns) {
  std::vector<uint16_t> gone;
  for (const auto& unit : luns_.units()) {
    const bool stays = std::any_of(luns.begin(), luns.end(), [&](const LunMapping& mapping) {
      return mapping.number == unit->number && mapping.unit == unit->unit;
    });
    if (!stays) gone.push_back(unit->number);
  }
  for (const uint16_t number : gone) removed_.push_back(luns_.remove(number));
  for (size_t i = removed_.size() - gone.size(); i < removed_.size(); ++i) {
    stop_tasks_of(*removed_[i]);
  }
  if (!gone.empty()) reactor_.defer(*this);
  return !gone.empty();
}

void DeviceServer::close_removed_units() {
  const auto in_use = std::partition(removed_.begin(), removed_.end(),
                                     [](const auto& unit) { return unit->tasks.empty(); });
  for (auto unit = removed_.begin(); unit != in_use; ++unit) (*unit)->unit->detach(mailbox_);
  removed_.erase(removed_.begin(), in_use);
}

}  // namespace vjbod::scsi
