// SPDX-License-Identifier: Apache-2.0
// The target's state in memory and on disk, always the same: a change that cannot be saved did not
// happen. On the control reactor; a change waits for the disk.
#pragma once

#include <functional>
#include <string>

#include "common/base/result.h"
#include "common/config/state_file.h"
#include "target/control/target_state.h"

namespace vjbod::target {

class StateStore {
 public:
  static constexpr const char* file_name = "target.json";

  // The directory must be held (config::StateDirectory) for as long as the store lives.
  static Result<StateStore> open(const std::string& directory);

  const TargetState& state() const { return state_; }
  // References into the state are no longer valid afterwards, whatever the result is.
  Status change(const std::function<void(TargetState&)>& edit);

 private:
  StateStore(config::StateFile file, TargetState state, std::string saved)
      : file_(std::move(file)), state_(std::move(state)), saved_(std::move(saved)) {}

  config::StateFile file_;
  TargetState state_;
  std::string saved_;  // the JSON that is on disk, to go back to
};

}  // namespace vjbod::target
