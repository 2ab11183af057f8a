// SPDX-License-Identifier: Apache-2.0
// The iSCSI side as the control side calls it. Two threads: the control reactor, which may wait for
// the disk, and the home reactor of the TargetServer, which never waits. Every call here is made on
// the control reactor and carried out on the home reactor, in order; every answer comes back on the
// control reactor. With one reactor for both (tests) it works the same.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/reactor.h"
#include "target/iscsi/target_server.h"

namespace vjbod::target {

class Serving {
 public:
  // All outlive this object and what it has posted.
  Serving(Reactor& control, Reactor& home, TargetServer& server)
      : control_(control), home_(home), server_(server) {}

  Reactor& control() const { return control_; }
  Reactor& home() const { return home_; }

  void set_target(TargetDefinition target);
  // `done`: nobody can log in any more, and no I/O is under way.
  void remove_target(std::string name, std::function<void()> done);
  void set_access(std::shared_ptr<const AccessTable> access);
  void set_advertised_portals(std::vector<std::string> portals);
  void list_sessions(std::function<void(std::vector<SessionInfo>)> done);
  void end_sessions(std::string initiator_name, std::string target_name, Error reason,
                    std::function<void(size_t)> done);
  void end_session(SessionId session, Error reason, std::function<void(bool)> done);

 private:
  void at_home(std::function<void(TargetServer&)> work);

  Reactor& control_;
  Reactor& home_;
  TargetServer& server_;
};

}  // namespace vjbod::target
