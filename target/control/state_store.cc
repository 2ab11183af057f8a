// SPDX-License-Identifier: Apache-2.0
#include "target/control/state_store.h"

#include <nlohmann/json.hpp>

#include "common/base/check.h"

namespace vjbod::target {

Result<StateStore> StateStore::open(const std::string& directory) {
  config::StateFile file(directory, file_name, TargetState::version);
  Result<nlohmann::json> json = file.load();
  if (!json) return fail(json.error());
  Result<TargetState> state = state_from_json(*json);
  if (!state) return fail(file.damaged(state.error().text));
  return StateStore(std::move(file), std::move(*state), json->dump());
}

Status StateStore::change(const std::function<void(TargetState&)>& edit) {
  edit(state_);
  nlohmann::json changed = to_json(state_);
  Status saved = file_.save(changed);
  if (saved) {
    saved_ = changed.dump();
    return {};
  }
  Result<TargetState> before = state_from_json(nlohmann::json::parse(saved_));
  VJBOD_CHECK(before, "{}", before.error().text);
  state_ = std::move(*before);
  return saved;
}

}  // namespace vjbod::target
