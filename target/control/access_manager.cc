// SPDX-License-Identifier: Apache-2.0
#include "target/control/access_manager.h"

#include <array>
#include <memory>
#include <vector>

#include "common/base/random.h"
#include "common/config/values.h"
#include "common/iscsi/errc.h"
#include "common/iscsi/name.h"
#include "common/rpc/errc.h"

namespace vjbod::target {

namespace {

using rpc::Errc;

Error withdrawn(std::string_view what) {
  return {iscsi::Errc::closed_locally, std::string(what)};
}

// 128 random bits in a form that every implementation takes.
iscsi::Secret make_secret() {
  std::array<std::byte, 16> bytes;
  fill_secure_random(bytes);
  std::string text;
  for (std::byte b : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(b));
  return iscsi::Secret(text);
}

// Reports when so many have, with the first failure of them.
std::function<void(Status)> after_all(size_t count, std::function<void(Status)> done) {
  return [left = std::make_shared<size_t>(count), outcome = std::make_shared<Status>(),
          done = std::move(done)](const Status& one) {
    if (!one && *outcome) *outcome = one;
    if (--*left == 0) done(*outcome);
  };
}

LunBinding fresh_binding(const PairedHost& host, const std::string& target_iqn) {
  return {host.name, {host.initiator_iqn, make_secret()}, {target_iqn, make_secret()}};
}

Result<std::string> checked_iqn(const std::string& iqn) {
  Result<std::string> name = iscsi::normalised_name(iqn);
  if (!name) return fail(Errc::usage, "{}", name.error().text);
  return name;
}

// RFC 7143 section 9.2.1: the two directions never share a secret.
Status check_credentials(const ForeignInitiator& initiator) {
  if (initiator.mutual && !initiator.chap)
    return fail(Errc::usage, "a mutual secret needs a CHAP secret of the initiator too");
  for (const auto* credentials : {&initiator.chap, &initiator.mutual}) {
    if (!*credentials) continue;
    if (Status valid = iscsi::check_chap_name((*credentials)->user); !valid)
      return fail(Errc::usage, "{}", valid.error().text);
    if (Status valid = iscsi::check_secret(as_text((*credentials)->secret.bytes())); !valid)
      return fail(Errc::usage, "{}", valid.error().text);
  }
  if (initiator.mutual && initiator.mutual->secret.same_as(initiator.chap->secret))
    return fail(Errc::usage, "the two CHAP secrets must differ");
  return {};
}

}  // namespace

Status AccessManager::change(const std::function<void(TargetState&)>& edit) {
  Status saved = store_.change(edit);
  if (saved) changed_();
  return saved;
}

Result<const LunRecord*> AccessManager::find_lun(const std::string& name) const {
  auto found = store_.state().luns.find(name);
  if (found == store_.state().luns.end())
    return fail(Errc::not_found, "there is no LUN {}", config::printable(name, 64));
  return &found->second;
}

const PairedHost* AccessManager::find_host(const rpc::Fingerprint& fingerprint) const {
  for (const auto& [name, host] : store_.state().hosts)
    if (host.fingerprint == fingerprint) return &host;
  return nullptr;
}

const PairedHost* AccessManager::host_with_iqn(const std::string& iqn) const {
  for (const auto& [name, host] : store_.state().hosts)
    if (host.initiator_iqn == iqn) return &host;
  return nullptr;
}

Result<LunBinding> AccessManager::make_binding(const std::string& host,
                                               const std::string& target_iqn) const {
  auto found = store_.state().hosts.find(host);
  if (found == store_.state().hosts.end())
    return fail(Errc::not_found, "there is no paired host {}", config::printable(host, 64));
  return fresh_binding(found->second, target_iqn);
}

bool AccessManager::in_force(const Status& outcome) {
  return outcome || outcome.error().code == Errc::timeout;
}

void AccessManager::bind(const std::string& lun, const std::string& host,
                         std::function<void(Status)> done) {
  Result<const LunRecord*> record = find_lun(lun);
  if (!record) return done(fail(record.error()));
  if ((*record)->binding && (*record)->binding->host != host)
    return done(fail(Errc::bound_to_another_host,
                     "LUN {} is bound to {}; unbind it first, when that host has let go of it", lun,
                     (*record)->binding->host));
  if (!(*record)->allowed_initiators.empty()) {
    const std::string& initiator = *(*record)->allowed_initiators.begin();
    return done(fail(Errc::busy,
                     "LUN {} is open to the initiator {}; two sides that write to it would destroy "
                     "its data. Take that right away first: vjbod target initiator deny {} {}",
                     lun, initiator, initiator, lun));
  }
  const std::string target = (*record)->target_iqn;
  Result<LunBinding> binding = make_binding(host, target);
  if (!binding) return done(fail(binding.error()));
  Status changed =
      change([&](TargetState& state) { state.luns.at(lun).binding = std::move(*binding); });
  if (!changed) return done(changed);
  serving_.end_sessions("", target, withdrawn("the LUN is bound anew"), std::move(done));
}

void AccessManager::unbind(const std::string& lun, std::function<void(Status)> done) {
  Result<const LunRecord*> record = find_lun(lun);
  if (!record) return done(fail(record.error()));
  // Others use it meanwhile, with every right to.
  if (!(*record)->allowed_initiators.empty()) return done({});
  const std::string target = (*record)->target_iqn;
  // Unbound before: its sessions may still be on their way out.
  if ((*record)->binding) {
    Status changed = change([&](TargetState& state) { state.luns.at(lun).binding.reset(); });
    if (!changed) return done(changed);
  }
  serving_.end_sessions("", target, withdrawn("the LUN is not bound to this host any more"),
                        std::move(done));
}

Status AccessManager::add_host(PairedHost host) {
  if (Status valid = config::check_name("host name", host.name); !valid)
    return fail(Errc::usage, "{}", valid.error().text);
  Result<std::string> iqn = checked_iqn(host.initiator_iqn);
  if (!iqn) return fail(iqn.error());
  host.initiator_iqn = *iqn;
  const PairedHost* known = find_host(host.fingerprint);
  const std::string old_name = known != nullptr ? known->name : host.name;
  const bool same_initiator = known != nullptr && known->initiator_iqn == host.initiator_iqn;
  const auto& hosts = store_.state().hosts;
  if (auto same = hosts.find(host.name);
      same != hosts.end() && same->second.fingerprint != host.fingerprint)
    return fail(Errc::already_exists,
                "another host with the name {} is paired; unpair that one first (vjbod target "
                "unpair {}), or give this one another name",
                host.name, host.name);
  const PairedHost* same_iqn = host_with_iqn(host.initiator_iqn);
  if ((same_iqn != nullptr && same_iqn != known) ||
      store_.state().initiators.contains(host.initiator_iqn))
    return fail(Errc::already_exists, "the initiator name {} belongs to another one already",
                host.initiator_iqn);
  if (known == nullptr && hosts.size() >= TargetState::hosts_max)
    return fail(Errc::no_space, "{} hosts are paired, which is the limit", TargetState::hosts_max);
  return change([&](TargetState& state) {
    state.hosts.erase(old_name);
    for (auto& [name, lun] : state.luns) {
      if (!lun.binding || lun.binding->host != old_name) continue;
      lun.binding->host = host.name;
      // The old name proves nothing any more, with whatever secret.
      if (!same_initiator) lun.binding = fresh_binding(host, lun.target_iqn);
    }
    state.hosts.emplace(host.name, std::move(host));
  });
}

void AccessManager::remove_host(const std::string& name, std::function<void(Status)> done) {
  auto found = store_.state().hosts.find(name);
  if (found == store_.state().hosts.end())
    return done(fail(Errc::not_found, "there is no paired host {}", config::printable(name, 64)));
  const std::string iqn = found->second.initiator_iqn;
  // Of its LUNs too: it may have had another initiator name when it logged in there.
  std::vector<std::string> targets;
  Status changed = change([&](TargetState& state) {
    for (auto& [lun_name, lun] : state.luns) {
      if (!lun.binding || lun.binding->host != name) continue;
      targets.push_back(lun.target_iqn);
      lun.binding.reset();
    }
    state.hosts.erase(name);
  });
  if (!changed) return done(changed);
  const Error reason = withdrawn("the host is not paired any more");
  auto one_ended = after_all(1 + targets.size(), std::move(done));
  serving_.end_sessions(iqn, "", reason, one_ended);
  for (const std::string& target : targets) serving_.end_sessions("", target, reason, one_ended);
}

Status AccessManager::add_initiator(ForeignInitiator initiator) {
  Result<std::string> iqn = checked_iqn(initiator.iqn);
  if (!iqn) return fail(iqn.error());
  initiator.iqn = *iqn;
  if (Status valid = check_credentials(initiator); !valid) return valid;
  if (const PairedHost* host = host_with_iqn(*iqn))
    return fail(Errc::already_exists, "{} is the initiator of the paired host {}", *iqn,
                host->name);
  const auto& initiators = store_.state().initiators;
  if (!initiators.contains(*iqn) && initiators.size() >= TargetState::initiators_max)
    return fail(Errc::no_space, "{} initiators are known, which is the limit",
                TargetState::initiators_max);
  return change([&](TargetState& state) {
    state.initiators.insert_or_assign(initiator.iqn, std::move(initiator));
  });
}

Result<std::string> AccessManager::known_initiator(const std::string& iqn) const {
  Result<std::string> name = checked_iqn(iqn);
  if (!name) return name;
  if (!store_.state().initiators.contains(*name))
    return fail(Errc::not_found,
                "the initiator {} is not known; add it first: vjbod target initiator add {}", *name,
                *name);
  return name;
}

void AccessManager::remove_initiator(const std::string& iqn, std::function<void(Status)> done) {
  Result<std::string> name = known_initiator(iqn);
  if (!name) return done(fail(name.error()));
  Status changed = change([&](TargetState& state) {
    state.initiators.erase(*name);
    for (auto& [lun_name, lun] : state.luns) lun.allowed_initiators.erase(*name);
  });
  if (!changed) return done(changed);
  serving_.end_sessions(*name, "", withdrawn("the initiator was removed"), std::move(done));
}

Status AccessManager::allow(const std::string& iqn, const std::string& lun) {
  Result<std::string> name = known_initiator(iqn);
  if (!name) return fail(name.error());
  Result<const LunRecord*> record = find_lun(lun);
  if (!record) return fail(record.error());
  if ((*record)->binding)
    return fail(Errc::bound_to_another_host,
                "LUN {} is bound to the host {}; two sides that write to it would destroy its "
                "data. Unbind it first: vjbod target lun unbind {}",
                lun, (*record)->binding->host, lun);
  if ((*record)->allowed_initiators.contains(*name)) return {};
  return change([&](TargetState& state) { state.luns.at(lun).allowed_initiators.insert(*name); });
}

void AccessManager::deny(const std::string& iqn, const std::string& lun,
                         std::function<void(Status)> done) {
  Result<std::string> name = known_initiator(iqn);
  if (!name) return done(fail(name.error()));
  Result<const LunRecord*> record = find_lun(lun);
  if (!record) return done(fail(record.error()));
  const std::string target = (*record)->target_iqn;
  // Denied before: its sessions may still be on their way out.
  if ((*record)->allowed_initiators.contains(*name)) {
    Status changed =
        change([&](TargetState& state) { state.luns.at(lun).allowed_initiators.erase(*name); });
    if (!changed) return done(changed);
  }
  serving_.end_sessions(*name, target, withdrawn("the initiator may not use the LUN any more"),
                        std::move(done));
}

}  // namespace vjbod::target
