// SPDX-License-Identifier: Apache-2.0
#include "target/control/serving.h"

#include <utility>

#include "common/rpc/errc.h"

namespace vjbod::target {

void Serving::at_home(std::function<void(TargetServer&)> work) {
  home_.post([&server = server_, work = std::move(work)] { work(server); });
}

void Serving::set_target(TargetDefinition target) {
  at_home([target = std::move(target)](TargetServer& server) { server.set_target(target); });
}

void Serving::remove_target(std::string name, std::function<void()> done) {
  at_home(
      [&control = control_, name = std::move(name), done = std::move(done)](TargetServer& server) {
        server.remove_target(name, [&control, done] { control.post(done); });
      });
}

void Serving::set_access(std::shared_ptr<const AccessTable> access) {
  at_home([access = std::move(access)](TargetServer& server) { server.set_access(access); });
}

void Serving::set_advertised_portals(std::vector<std::string> portals) {
  at_home([portals = std::move(portals)](TargetServer& server) {
    server.set_advertised_portals(portals);
  });
}

void Serving::list_sessions(std::function<void(std::vector<SessionInfo>)> done) {
  at_home([&control = control_, done = std::move(done)](TargetServer& server) {
    server.list_sessions([&control, done](std::vector<SessionInfo> sessions) {
      control.post([done, sessions = std::move(sessions)] { done(sessions); });
    });
  });
}

void Serving::Waits::finish(uint64_t number, Status status) {
  const auto found = waiting.find(number);
  if (found == waiting.end()) return;
  const auto done = std::move(found->second.done);
  waiting.erase(found);
  done(std::move(status));
}

void Serving::end_sessions(std::string initiator_name, std::string target_name, Error reason,
                           std::function<void(Status)> done) {
  const uint64_t number = ++waits_->last;
  auto finish = [&control = control_, waits = std::weak_ptr(waits_), number](Status status) {
    control.post([waits, number, status = std::move(status)] {
      if (const auto alive = waits.lock()) alive->finish(number, status);
    });
  };
  const std::string whose = target_name.empty() ? initiator_name : target_name;
  auto deadline = std::make_unique<Timer>(control_, [finish, whose] {
    finish(fail(rpc::Errc::timeout,
                "the change is in force, but old sessions of {} still have commands at the disk "
                "after {} s; nobody can log in there before these have ended",
                whose, std::chrono::duration_cast<std::chrono::seconds>(end_deadline).count()));
  });
  deadline->arm_after(end_deadline);
  waits_->waiting[number] = {std::move(done), std::move(deadline)};
  at_home([initiator_name = std::move(initiator_name), target_name = std::move(target_name),
           reason = std::move(reason), finish](TargetServer& server) {
    server.end_sessions(initiator_name, target_name, reason, [finish](size_t) { finish({}); });
  });
}

void Serving::end_session(SessionId session, Error reason, std::function<void(bool)> done) {
  at_home([&control = control_, session, reason = std::move(reason),
           done = std::move(done)](TargetServer& server) {
    server.end_session(session, reason, [&control, done](bool found) {
      control.post([done, found] { done(found); });
    });
  });
}

}  // namespace vjbod::target
