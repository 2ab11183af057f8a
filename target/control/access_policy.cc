// SPDX-License-Identifier: Apache-2.0
#include "target/control/access_policy.h"

namespace vjbod::target {

AccessPolicy::AccessPolicy(const TargetState& state, const std::set<std::string>& open_targets,
                           std::vector<iscsi::ChapAlgorithm> algorithms)
    : algorithms_(std::move(algorithms)) {
  for (const auto& [iqn, foreign] : state.initiators) {
    Initiator& initiator = initiators_[iqn];
    if (!foreign.chap) continue;
    auto credentials = std::make_shared<Credentials>();
    credentials->initiator = foreign.chap->copy();
    if (foreign.mutual) credentials->mutual = foreign.mutual->copy();
    initiator.discovery = std::move(credentials);
  }
  for (const auto& [name, host] : state.hosts) initiators_[host.initiator_iqn].paired_host = true;
  for (const auto& [name, lun] : state.luns) {
    const bool open = open_targets.contains(lun.target_iqn);
    if (lun.binding) {
      auto host = state.hosts.find(lun.binding->host);
      if (host == state.hosts.end()) continue;
      auto credentials = std::make_shared<Credentials>();
      credentials->initiator = lun.binding->chap.copy();
      credentials->mutual = lun.binding->mutual.copy();
      initiators_[host->second.initiator_iqn].targets[lun.target_iqn] = {open, true,
                                                                         std::move(credentials)};
      continue;
    }
    for (const std::string& iqn : lun.allowed_initiators) {
      auto initiator = initiators_.find(iqn);
      if (initiator == initiators_.end() || initiator->second.paired_host) continue;
      initiator->second.targets[lun.target_iqn] = {open, false, initiator->second.discovery};
    }
  }
}

LoginDecision AccessPolicy::decide(const LoginIdentity& identity) const {
  LoginDecision refused;
  refused.access = LoginDecision::Access::forbidden;
  auto initiator = initiators_.find(identity.initiator_name);
  if (initiator == initiators_.end()) return refused;
  if (identity.discovery) {
    if (initiator->second.paired_host) return refused;
    return allow(initiator->second, initiator->second.discovery);
  }
  auto target = initiator->second.targets.find(identity.target_name);
  if (target == initiator->second.targets.end()) {
    refused.access = LoginDecision::Access::not_found;
    return refused;
  }
  LoginDecision decision = allow(initiator->second, target->second.credentials);
  decision.sole_nexus = target->second.sole;
  if (!target->second.open) decision.access = LoginDecision::Access::unavailable;
  return decision;
}

std::vector<std::string> AccessPolicy::targets_of(std::string_view initiator_name) const {
  std::vector<std::string> result;
  auto initiator = initiators_.find(initiator_name);
  if (initiator == initiators_.end() || initiator->second.paired_host) return result;
  for (const auto& [iqn, grant] : initiator->second.targets)
    if (grant.open) result.push_back(iqn);
  return result;
}

LoginDecision AccessPolicy::allow(const Initiator& initiator,
                                  const std::shared_ptr<const Credentials>& credentials) const {
  LoginDecision decision;
  decision.access = LoginDecision::Access::allowed;
  if (credentials == nullptr) return decision;
  ChapRequirement requirement;
  requirement.initiator = credentials->initiator.copy();
  if (credentials->mutual) requirement.mutual = credentials->mutual->copy();
  requirement.algorithms = algorithms_;
  if (initiator.paired_host)
    requirement.algorithms.assign(iscsi::chap_algorithms_of_ours.begin(),
                                  iscsi::chap_algorithms_of_ours.end());
  decision.chap = std::move(requirement);
  return decision;
}

}  // namespace vjbod::target
