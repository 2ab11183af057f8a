// SPDX-License-Identifier: Apache-2.0
// All that the target daemon keeps across restarts, as plain values, and its JSON form. What is
// loaded has passed the same grammar as what people type. Secrets are in it: the file is 0600 and
// nothing here is ever logged. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/base/result.h"
#include "common/iscsi/chap.h"
#include "common/rpc/identity.h"
#include "common/runtime/clock.h"
#include "target/scsi/logical_unit.h"

namespace vjbod::target {

// A LUN that belongs to a paired host. Both sides prove a secret at every login.
struct LunBinding {
  std::string host;               // name of a paired host
  iscsi::ChapCredentials chap;    // what the host proves
  iscsi::ChapCredentials mutual;  // what we prove
};

struct LunRecord {
  std::string name;
  scsi::UnitUuid uuid{};
  std::string target_iqn;  // as it was at creation: a box that gets a new name keeps its targets
  std::string pool;
  uint64_t size_bytes = 0;
  uint32_t block_size = 512;
  bool thick = false;
  std::string request_id;  // of the ProvisionLun call that made it; may be empty
  WallTime created_at{};
  std::optional<LunBinding> binding;
  std::set<std::string> allowed_initiators;  // IQNs of foreign initiators
};

// An initiator that is no paired host: ESXi, Windows, open-iscsi.
struct ForeignInitiator {
  std::string iqn;
  std::optional<iscsi::ChapCredentials> chap;
  std::optional<iscsi::ChapCredentials> mutual;  // only together with `chap`
};

struct PairedHost {
  std::string name;
  rpc::Fingerprint fingerprint;
  std::string initiator_iqn;
  WallTime paired_at{};
};

// A LUN file that must not be there: its creation has not come to an end, or its deletion has
// begun. Written before the file is made or removed, so that a crash in between is cleared up at
// the next start, and no other file is ever taken for rubbish.
struct DoomedFile {
  std::string pool;
  std::string file;  // the LUN's UUID
  auto operator<=>(const DoomedFile&) const = default;
};

struct TargetState {
  static constexpr int version = 1;
  static constexpr size_t luns_max = 256;
  static constexpr size_t initiators_max = 256;
  static constexpr size_t hosts_max = 64;

  std::map<std::string, LunRecord> luns;               // by name
  std::map<std::string, ForeignInitiator> initiators;  // by IQN
  std::map<std::string, PairedHost> hosts;             // by name
  std::set<DoomedFile> doomed;
};

nlohmann::json to_json(const TargetState& state);
// The error says which entry is wrong.
Result<TargetState> state_from_json(const nlohmann::json& json);

std::string uuid_text(const scsi::UnitUuid& uuid);  // "2f1b0c3e-…", RFC 4122 form
std::optional<scsi::UnitUuid> parse_uuid(std::string_view text);

}  // namespace vjbod::target
