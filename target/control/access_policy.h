// SPDX-License-Identifier: Apache-2.0
// Who may log in to which target, and what they must prove: a snapshot of the state, made anew
// after every change. Immutable, used on any shard. Each target has one LUN.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "target/control/target_state.h"
#include "target/iscsi/server_view.h"

namespace vjbod::target {

class AccessPolicy final : public AccessTable {
 public:
  // `open_targets`: the IQNs of targets whose LUN can be served; the others are unavailable.
  // `algorithms`: those of CHAP that foreign initiators may use. Paired hosts know the strong ones.
  AccessPolicy(const TargetState& state, const std::set<std::string>& open_targets,
               std::vector<iscsi::ChapAlgorithm> algorithms);

  // A paired host reaches the LUNs bound to it, with mutual CHAP and one nexus at a time, and no
  // discovery: it learns its targets over the control channel. A foreign initiator reaches the LUNs
  // it was allowed, and a discovery that lists those, with CHAP where it was given a secret. To
  // everybody else, and for everything else, there is no difference between what is forbidden and
  // what does not exist.
  LoginDecision decide(const LoginIdentity& identity) const override;
  std::vector<std::string> targets_of(std::string_view initiator_name) const override;

 private:
  struct Credentials {
    iscsi::ChapCredentials initiator;
    std::optional<iscsi::ChapCredentials> mutual;
  };
  struct Grant {
    bool open = false;                               // can be served now
    bool sole = false;                               // for one nexus at a time
    std::shared_ptr<const Credentials> credentials;  // none: no authentication
  };
  struct Initiator {
    bool paired_host = false;
    std::shared_ptr<const Credentials> discovery;
    std::map<std::string, Grant, std::less<>> targets;
  };

  LoginDecision allow(const Initiator& initiator,
                      const std::shared_ptr<const Credentials>& credentials) const;

  std::map<std::string, Initiator, std::less<>> initiators_;
  std::vector<iscsi::ChapAlgorithm> algorithms_;
};

}  // namespace vjbod::target
