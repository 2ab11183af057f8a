// SPDX-License-Identifier: Apache-2.0
// Who may use what: paired hosts and their LUNs, foreign initiators and theirs. Each change is
// saved, then in force: for new logins, and for the sessions that it takes the right from, which
// end. `done` comes when nothing of these is left at the disk, or with Errc::timeout when that
// takes too long; the change is in force then all the same. On the control reactor.
#pragma once

#include <functional>
#include <string>

#include "common/base/result.h"
#include "target/control/serving.h"
#include "target/control/state_store.h"

namespace vjbod::target {

class AccessManager {
 public:
  // `changed` renews the access table.
  AccessManager(StateStore& store, Serving& serving, std::function<void()> changed)
      : store_(store), serving_(serving), changed_(std::move(changed)) {}

  // A binding with fresh secrets, for a LUN that is about to be made. not_found: no such host.
  Result<LunBinding> make_binding(const std::string& host, const std::string& target_iqn) const;
  // Binds an existing LUN. Bound to the same host already: fresh secrets. Bound to another one, or
  // open to foreign initiators: refused. Sessions from before end.
  void bind(const std::string& lun, const std::string& host, std::function<void(Status)> done);
  // Not bound at all is no error.
  void unbind(const std::string& lun, std::function<void(Status)> done);

  // A host that is known by its fingerprint may come back with another name or IQN. With another
  // IQN its sessions end, and its LUNs get fresh secrets.
  Status add_host(PairedHost host);
  // Its bindings and secrets are gone. The LUNs and their data stay.
  void remove_host(const std::string& name, std::function<void(Status)> done);
  const PairedHost* find_host(const rpc::Fingerprint& fingerprint) const;

  // The same again is no error; with other secrets it replaces them, for logins from then on. With
  // another CHAP user its sessions end.
  Status add_initiator(ForeignInitiator initiator);
  void remove_initiator(const std::string& iqn, std::function<void(Status)> done);
  Status allow(const std::string& iqn, const std::string& lun);
  void deny(const std::string& iqn, const std::string& lun, std::function<void(Status)> done);

  // Whether a change with this outcome is in force.
  static bool in_force(const Status& outcome);

 private:
  Status change(const std::function<void(TargetState&)>& edit);
  Result<const LunRecord*> find_lun(const std::string& name) const;
  Result<std::string> known_initiator(const std::string& iqn) const;
  const PairedHost* host_with_iqn(const std::string& iqn) const;

  StateStore& store_;
  Serving& serving_;
  std::function<void()> changed_;
};

}  // namespace vjbod::target
