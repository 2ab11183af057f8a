// SPDX-License-Identifier: Apache-2.0
// Makes, opens, grows and deletes LUNs, and hands them to the iSCSI side, one target each with LUN
// number 0. On the control reactor; waits for the disk. What a crash leaves half done is cleared up
// at the next start, by the state's list of doomed files and never by guessing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/runtime/timer_queue.h"
#include "target/backstore/factory.h"
#include "target/control/config.h"
#include "target/control/pools.h"
#include "target/control/serving.h"
#include "target/control/state_store.h"
#include "target/scsi/logical_unit.h"

namespace vjbod::target {

struct LunSpecification {
  std::string name;
  std::string pool;
  uint64_t size_bytes = 0;
  uint32_t block_size = 512;
  bool thick = false;
  std::string request_id;             // the same one again gives the same LUN
  std::optional<LunBinding> binding;  // from the first moment on
};

struct LunStatus {
  const LunRecord* record = nullptr;  // valid until the next change of the state
  uint64_t naa = 0;
  std::string serial;
  uint64_t allocated_bytes = 0;
  std::string error;  // why it is not served; empty: it is
};

class LunManager {
 public:
  // `changed` runs after each change of what exists or can be served; it renews the access table.
  LunManager(const TargetConfig& config, StateStore& store, Pools& pools, Serving& serving,
             std::function<void()> changed);
  ~LunManager();

  // Clears up doomed files and opens what is there. One that cannot be opened is left alone and
  // shown as failed. Returns what a person should know.
  std::vector<std::string> open_all();
  // Tries those that failed once more. Returns those that are served now.
  std::vector<std::string> retry_failed();

  // The same request again, or a LUN made before with the same properties and nothing bound to it,
  // is no error.
  Status create(LunSpecification specification);
  // The sessions of its target end; then the LUN and its data are gone for good. The caller has
  // checked that nobody needs it. busy: a session still has a command at the disk after
  // Serving::end_deadline, or the LUN does not get out of use; it stays, and is served again.
  void remove(const std::string& name, std::function<void(Status)> done);
  Status resize(const std::string& name, uint64_t size_bytes);

  // By name, or by NAA with or without "0x" in front.
  Result<const LunRecord*> find(std::string_view name_or_naa) const;
  LunStatus status(const LunRecord& record) const;
  std::set<std::string> open_targets() const;  // IQNs

  // --- for tests of what happens with a bad disk ---
  Result<backstore::FilterControls> fault_controls(const std::string& name) const;

 private:
  struct OpenLun {
    std::shared_ptr<scsi::LogicalUnit> unit;
    backstore::FilterControls controls;
  };
  class Removal;

  Status check_new(const LunSpecification& specification) const;
  Result<OpenLun> open(const LunRecord& record, bool may_have_grown);
  Status open_and_serve(const LunRecord& record);
  void serve(const LunRecord& record, OpenLun lun);
  std::vector<std::string> clear_doomed();
  void finish_removal(const std::string& name, const std::function<void(Status)>& done);
  Status check_not_removing(const std::string& name) const;

  const TargetConfig& config_;
  StateStore& store_;
  Pools& pools_;
  Serving& serving_;
  std::function<void()> changed_;
  const std::string boot_id_, instance_id_;    // see cache_id.h
  std::map<std::string, OpenLun> open_;        // by name
  std::map<std::string, std::string> failed_;  // name to reason
  std::map<std::string, std::unique_ptr<Removal>> removals_;
};

}  // namespace vjbod::target
