// SPDX-License-Identifier: Apache-2.0
// The iSCSI side as the control side calls it. Two threads: the control reactor, which may wait for
// the disk, and the home reactor of the TargetServer, which never waits. Every call here is made on
// the control reactor and carried out on the home reactor, in order; every answer comes back on the
// control reactor. With one reactor for both (tests) it works the same.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/reactor.h"
#include "common/runtime/timer_queue.h"
#include "target/iscsi/target_server.h"

namespace vjbod::target {

class Serving {
 public:
  // How long a call waits for sessions that were told to end, and for the last of their commands in
  // the backstore. Shorter than hosts wait for an answer.
  static constexpr Duration end_deadline = std::chrono::seconds(10);

  // All outlive this object and what it has posted.
  Serving(Reactor& control, Reactor& home, TargetServer& server)
      : control_(control), home_(home), server_(server) {}

  Reactor& control() const { return control_; }
  Reactor& home() const { return home_; }

  void set_target(TargetDefinition target);
  // `done`: nobody can log in any more, and no I/O is under way; or Errc::timeout when its sessions
  // take longer than end_deadline to end.
  void remove_target(std::string name, std::function<void(Status)> done);
  // Ends the sessions that the new table would not let in; end_sessions() waits for them.
  void set_access(std::shared_ptr<const AccessTable> access);
  void set_advertised_portals(std::vector<std::string> portals);
  void list_sessions(std::function<void(std::vector<SessionInfo>)> done);
  // Ends every session that matches; an empty string matches all. `done`: nothing of them is left,
  // also of those that were ending before; or Errc::timeout when that takes longer than
  // end_deadline.
  void end_sessions(std::string initiator_name, std::string target_name, Error reason,
                    std::function<void(Status)> done);
  // Errc::not_found: no such session. Errc::timeout: it was told to, but takes longer than
  // end_deadline.
  void end_session(SessionId session, Error reason, std::function<void(Status)> done);

 private:
  struct Wait {
    std::function<void(Status)> done;
    std::unique_ptr<Timer> deadline;
  };
  // Used on the control reactor only; the home reactor holds it weakly and looks at nothing.
  struct Waits {
    uint64_t last = 0;
    std::map<uint64_t, Wait> waiting;
    void finish(uint64_t number, Status status);
  };

  void at_home(std::function<void(TargetServer&)> work);
  // Gives the function that reports to `done`, from whatever thread. After end_deadline `done` gets
  // `late` instead, and what is reported then is of no interest any more.
  std::function<void(Status)> wait(std::function<void(Status)> done, std::string late);

  Reactor& control_;
  Reactor& home_;
  TargetServer& server_;
  const std::shared_ptr<Waits> waits_ = std::make_shared<Waits>();
};

}  // namespace vjbod::target
