// SPDX-License-Identifier: Apache-2.0
#include "target/control/lun_manager.h"

#include <algorithm>

#include "common/base/boot_id.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/config/values.h"
#include "common/runtime/wall_clock.h"
#include "target/backstore/errc.h"
#include "target/control/cache_id.h"
#include "target/control/errors.h"

namespace vjbod::target {

namespace {

using rpc::Errc;

// The sessions are gone, but their shards may still be letting go of the LUN: its file can be
// removed only when nobody has it open.
constexpr Duration release_poll = std::chrono::milliseconds(5);
constexpr int release_polls_max = 1000;

scsi::UnitUuid make_uuid() {
  scsi::UnitUuid uuid;
  fill_secure_random(uuid);
  uuid[6] = (uuid[6] & std::byte{0x0f}) | std::byte{0x40};  // RFC 4122 4.4: version 4
  uuid[8] = (uuid[8] & std::byte{0x3f}) | std::byte{0x80};
  return uuid;
}

bool same_properties(const LunRecord& record, const LunSpecification& specification) {
  return record.pool == specification.pool && record.size_bytes == specification.size_bytes &&
         record.block_size == specification.block_size && record.thick == specification.thick;
}

// As `find()` takes it.
bool is_naa(std::string_view name) {
  return name.size() == 16 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string bound_host(const std::optional<LunBinding>& binding) {
  return binding ? binding->host : std::string();
}

}  // namespace

// Waits until nobody has the LUN open any more, or gives it back.
class LunManager::Removal {
 public:
  using Done = std::function<void(std::shared_ptr<scsi::LogicalUnit> still_used)>;

  Removal(Reactor& reactor, Done done)
      : reactor_(reactor), done_(std::move(done)), timer_(reactor, [this] { look(); }) {}

  void watch(std::weak_ptr<scsi::LogicalUnit> unit) {
    unit_ = std::move(unit);
    timer_.arm_after(Duration::zero());
  }

 private:
  void look() {
    if (!unit_.expired() && ++polls_ < release_polls_max)
      timer_.arm_after(release_poll);
    else
      reactor_.post([done = std::move(done_), unit = unit_] { done(unit.lock()); });
  }

  Reactor& reactor_;
  Done done_;
  std::weak_ptr<scsi::LogicalUnit> unit_;
  int polls_ = 0;
  Timer timer_;
};

LunManager::LunManager(const TargetConfig& config, StateStore& store, Pools& pools,
                       Serving& serving, std::function<void()> changed)
    : config_(config),
      store_(store),
      pools_(pools),
      serving_(serving),
      changed_(std::move(changed)),
      boot_id_(kernel_boot_id()),
      instance_id_(uuid_text(make_uuid())) {}

LunManager::~LunManager() = default;

std::vector<std::string> LunManager::open_all() {
  std::vector<std::string> remarks = clear_doomed();
  std::vector<std::string> names;
  for (const auto& [name, record] : store_.state().luns) names.push_back(name);
  for (const std::string& name : names) {
    Status opened = open_and_serve(store_.state().luns.at(name));
    if (!opened) remarks.push_back(opened.error().text);
  }
  changed_();
  return remarks;
}

std::vector<std::string> LunManager::retry_failed() {
  std::vector<std::string> served, failed;
  for (const auto& [name, reason] : failed_) failed.push_back(name);
  for (const std::string& name : failed)
    if (open_and_serve(store_.state().luns.at(name))) served.push_back(name);
  if (!served.empty()) changed_();
  return served;
}

// A creation or a deletion that was interrupted: the file goes, as it would have.
std::vector<std::string> LunManager::clear_doomed() {
  std::vector<std::string> remarks;
  std::set<DoomedFile> cleared;
  for (const DoomedFile& doomed : store_.state().doomed) {
    Result<LunPool*> pool = pools_.find(doomed.pool);
    Status removed = pool ? (*pool)->remove(doomed.file) : Status(fail(pool.error()));
    if (removed || removed.error().code == backstore::Errc::not_found) {
      cleared.insert(doomed);
    } else {
      remarks.push_back(
          fmt::format("file {} in pool {} is left of an interrupted operation and "
                      "cannot be removed: {}",
                      doomed.file, doomed.pool, removed.error().text));
    }
  }
  if (cleared.empty()) return remarks;
  Status saved = store_.change([&](TargetState& state) {
    for (const DoomedFile& doomed : cleared) state.doomed.erase(doomed);
  });
  if (!saved) remarks.push_back(saved.error().text);
  return remarks;
}

Result<LunManager::OpenLun> LunManager::open(const LunRecord& record, bool may_have_grown) {
  Result<LunPool*> pool = pools_.find(record.pool);
  if (!pool) return fail(pool.error());
  Result<backstore::BackstoreConfig> described =
      (*pool)->describe(uuid_text(record.uuid), record.size_bytes);
  if (!described) return fail(described.error());
  backstore::BackstoreConfig& config = *described;
  config.block_bytes = record.block_size;
  config.cache = config_.cache;
  config.thick = record.thick;
  config.use_io_uring = config_.use_io_uring;
  if (config_.allow_test_faults) {
    config.filters.push_back({.kind = backstore::FilterKind::error});
    config.filters.push_back({.kind = backstore::FilterKind::delay});
    config.filters.push_back({.kind = backstore::FilterKind::trace});
  }
  Result<std::shared_ptr<backstore::Backstore>> opened = backstore::open_backstore(config);
  if (!opened) return fail(control_error(opened.error()));
  const uint64_t size_bytes = (*opened)->geometry().size_bytes;
  // A larger file is a growth that was not recorded any more; a smaller one has lost data.
  if (size_bytes < record.size_bytes || (size_bytes > record.size_bytes && !may_have_grown))
    return fail(Errc::other, "{} has {} bytes and not the {} on record; restore it from a backup",
                config.path, size_bytes, record.size_bytes);
  OpenLun lun;
  lun.controls = backstore::filter_controls(**opened);
  lun.unit = scsi::LogicalUnit::make(
      {.uuid = record.uuid,
       .cache_id = cache_id((*opened)->capabilities(), boot_id_, instance_id_),
       .backstore = std::move(*opened),
       .home = &serving_.home()});
  return lun;
}

Status LunManager::open_and_serve(const LunRecord& record) {
  const std::string name = record.name;
  Result<OpenLun> lun = open(record, true);
  if (!lun) {
    Error error = lun.error();
    error.text = fmt::format("LUN {} cannot be served: {}", name, error.text);
    failed_[name] = error.text;
    return fail(std::move(error));
  }
  const uint64_t size_bytes = lun->unit->backstore().geometry().size_bytes;
  serve(record, std::move(*lun));
  if (size_bytes == record.size_bytes) return {};
  return store_.change([&](TargetState& state) { state.luns.at(name).size_bytes = size_bytes; });
}

void LunManager::serve(const LunRecord& record, OpenLun lun) {
  serving_.set_target({record.target_iqn, {{.number = 0, .unit = lun.unit}}});
  failed_.erase(record.name);
  open_[record.name] = std::move(lun);
}

Status LunManager::check_new(const LunSpecification& specification) const {
  if (Status valid = config::check_name("LUN name", specification.name); !valid) return valid;
  if (is_naa(specification.name))
    return fail(Errc::usage, "{} would be taken for the NAA of a LUN: use another name",
                specification.name);
  if (Status valid = config::check_name("pool name", specification.pool); !valid) return valid;
  if (Status valid = config::check_lun_size(specification.size_bytes, specification.block_size);
      !valid)
    return valid;
  if (!specification.request_id.empty())
    if (Status valid = config::check_name("request id", specification.request_id); !valid)
      return valid;
  if (Status free = check_not_removing(specification.name); !free) return free;
  if (store_.state().luns.size() >= TargetState::luns_max)
    return fail(Errc::no_space, "this box has {} LUNs, which is the limit", TargetState::luns_max);
  const std::string iqn = target_iqn(config_, specification.name);
  for (const auto& [name, record] : store_.state().luns)
    if (record.target_iqn == iqn)
      return fail(Errc::already_exists, "LUN {} already has the target name {}", name, iqn);
  return {};
}

Status LunManager::create(LunSpecification specification) {
  const auto& luns = store_.state().luns;
  auto by_request = std::find_if(luns.begin(), luns.end(), [&](const auto& entry) {
    return !specification.request_id.empty() && entry.second.request_id == specification.request_id;
  });
  auto existing = by_request != luns.end() ? by_request : luns.find(specification.name);
  if (existing != luns.end()) {
    const LunRecord& record = existing->second;
    if (record.name == specification.name && record.request_id == specification.request_id &&
        same_properties(record, specification) &&
        bound_host(record.binding) == bound_host(specification.binding))
      return check_not_removing(record.name);
    return fail(Errc::already_exists,
                "LUN {} already exists with other properties: {} in pool {}{}", record.name,
                config::size_text(record.size_bytes), record.pool,
                record.binding ? ", bound to " + record.binding->host : "");
  }
  if (Status valid = check_new(specification); !valid) return valid;
  Result<LunPool*> pool = pools_.find(specification.pool);
  if (!pool) return fail(pool.error());

  LunRecord record;
  record.name = specification.name;
  record.uuid = make_uuid();
  record.target_iqn = target_iqn(config_, record.name);
  record.pool = specification.pool;
  record.size_bytes = specification.size_bytes;
  record.block_size = specification.block_size;
  record.thick = specification.thick;
  record.request_id = std::move(specification.request_id);
  record.created_at = wall_now();
  record.binding = std::move(specification.binding);
  const DoomedFile file{record.pool, uuid_text(record.uuid)};

  // Doomed until everything is in order: whatever stops us, the next start removes the file.
  Status saved = store_.change([&](TargetState& state) { state.doomed.insert(file); });
  if (!saved) return saved;
  auto give_up = [&](Error error) -> Status {
    Status removed = (*pool)->remove(file.file);
    if (removed || removed.error().code == backstore::Errc::not_found) {
      Status forgotten = store_.change([&](TargetState& state) { state.doomed.erase(file); });
      if (!forgotten) log::warn("{}", forgotten.error().text);
    }
    return fail(control_error(std::move(error)));
  };
  Status made = (*pool)->create(file.file, record.size_bytes, record.thick);
  if (!made) return give_up(made.error());
  Result<OpenLun> lun = open(record, false);
  if (!lun) return give_up(lun.error());
  const std::string name = record.name;
  saved = store_.change([&](TargetState& state) {
    state.doomed.erase(file);
    state.luns.emplace(name, std::move(record));
  });
  if (!saved) {
    lun->unit.reset();
    return give_up(saved.error());
  }
  serve(store_.state().luns.at(name), std::move(*lun));
  changed_();
  return {};
}

void LunManager::remove(const std::string& name, std::function<void(Status)> done) {
  auto record = store_.state().luns.find(name);
  if (record == store_.state().luns.end())
    return done(fail(Errc::not_found, "there is no LUN {}", config::printable(name, 64)));
  if (Status free = check_not_removing(name); !free) return done(std::move(free));
  auto released = [this, name, done](std::shared_ptr<scsi::LogicalUnit> unit) {
    removals_.erase(name);
    if (unit == nullptr) return finish_removal(name, done);
    serve(store_.state().luns.at(name), {unit, backstore::filter_controls(unit->backstore())});
    changed_();
    done(fail(Errc::busy, "LUN {} does not get out of use; it was not deleted", name));
  };
  Removal& removal =
      *removals_.emplace(name, std::make_unique<Removal>(serving_.control(), std::move(released)))
           .first->second;
  serving_.remove_target(record->second.target_iqn, [this, name, &removal, done](Status ended) {
    if (!ended) {
      removals_.erase(name);
      // Nothing has been touched: it is served again.
      if (auto lun = open_.find(name); lun != open_.end())
        serve(store_.state().luns.at(name), lun->second);
      return done(fail(Errc::busy, "LUN {} was not deleted: {}; try again when these have ended",
                       name, ended.error().text));
    }
    std::weak_ptr<scsi::LogicalUnit> unit;
    if (auto lun = open_.find(name); lun != open_.end()) {
      unit = lun->second.unit;
      open_.erase(lun);
    }
    removal.watch(std::move(unit));
  });
}

void LunManager::finish_removal(const std::string& name, const std::function<void(Status)>& done) {
  const LunRecord& record = store_.state().luns.at(name);
  const DoomedFile file{record.pool, uuid_text(record.uuid)};
  Status saved = store_.change([&](TargetState& state) {
    state.luns.erase(name);
    state.doomed.insert(file);
  });
  if (!saved) {
    Status back = open_and_serve(store_.state().luns.at(name));
    if (!back) log::error("{}", back.error().text);
    changed_();
    return done(saved);
  }
  failed_.erase(name);
  changed_();
  for (const std::string& remark : clear_doomed()) log::warn("{}", remark);
  done({});
}

Status LunManager::resize(const std::string& name, uint64_t size_bytes) {
  auto found = store_.state().luns.find(name);
  if (found == store_.state().luns.end())
    return fail(Errc::not_found, "there is no LUN {}", config::printable(name, 64));
  const LunRecord& record = found->second;
  if (Status free = check_not_removing(name); !free) return free;
  if (Status valid = config::check_lun_size(size_bytes, record.block_size); !valid) return valid;
  if (size_bytes < record.size_bytes)
    return fail(Errc::usage, "LUN {} has {} and can only grow, not shrink to {}", name,
                config::size_text(record.size_bytes), config::size_text(size_bytes));
  if (size_bytes == record.size_bytes) return {};
  auto lun = open_.find(name);
  if (lun == open_.end()) return fail(Errc::other, "{}", failed_.at(name));
  // Nothing grows that could not be put on record.
  if (Status writable = store_.change([](TargetState&) {}); !writable) return writable;
  if (Status grown = lun->second.unit->resize(size_bytes); !grown)
    return fail(control_error(grown.error()));
  Status saved =
      store_.change([&](TargetState& state) { state.luns.at(name).size_bytes = size_bytes; });
  if (!saved)
    return fail(Errc::partial, "LUN {} has grown, but this is not on record yet: {}", name,
                saved.error().text);
  return {};
}

Status LunManager::check_not_removing(const std::string& name) const {
  if (!removals_.contains(name)) return {};
  return fail(Errc::busy, "LUN {} is being deleted right now", name);
}

Result<const LunRecord*> LunManager::find(std::string_view name_or_naa) const {
  const auto& luns = store_.state().luns;
  const auto named = luns.find(std::string(name_or_naa));
  std::string_view digits = name_or_naa;
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  for (const auto& [name, record] : luns) {
    if (fmt::format("{:016x}", status(record).naa) != digits) continue;
    if (named == luns.end() || named->first == name) return &record;
    return fail(Errc::usage, "{} is the name of one LUN and the NAA of another, {}", digits, name);
  }
  if (named != luns.end()) return &named->second;
  return fail(Errc::not_found, "there is no LUN {}", config::printable(name_or_naa, 64));
}

LunStatus LunManager::status(const LunRecord& record) const {
  LunStatus result;
  result.record = &record;
  result.naa = scsi::naa_of(record.uuid);
  result.serial = scsi::serial_of(record.uuid);
  if (auto lun = open_.find(record.name); lun != open_.end())
    result.allocated_bytes = lun->second.unit->backstore().allocated_bytes();
  else if (auto reason = failed_.find(record.name); reason != failed_.end())
    result.error = reason->second;
  else
    result.error = "it is being deleted";
  return result;
}

std::set<std::string> LunManager::open_targets() const {
  std::set<std::string> result;
  for (const auto& [name, lun] : open_) result.insert(store_.state().luns.at(name).target_iqn);
  return result;
}

Result<backstore::FilterControls> LunManager::fault_controls(const std::string& name) const {
  if (!config_.allow_test_faults)
    return fail(
        Errc::permission,
        "faults are for tests; they need \"allow_test_faults = true\" in the configuration");
  auto lun = open_.find(name);
  if (lun == open_.end())
    return fail(Errc::not_found, "there is no LUN {} that is served", config::printable(name, 64));
  return lun->second.controls;
}

}  // namespace vjbod::target
