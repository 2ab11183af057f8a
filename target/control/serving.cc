// SPDX-License-Identifier: Apache-2.0
#include "target/control/serving.h"

#include <utility>

#include "common/rpc/errc.h"

namespace vjbod::target {

namespace {
constexpr auto end_deadline_s =
    std::chrono::duration_cast<std::chrono::seconds>(Serving::end_deadline).count();
}

void Serving::at_home(std::function<void(TargetServer&)> work) {
  home_.post([&server = server_, work = std::move(work)] { work(server); });
}

void Serving::set_target(TargetDefinition target) {
  at_home([target = std::move(target)](TargetServer& server) { server.set_target(target); });
}

void Serving::remove_target(std::string name, std::function<void(Status)> done) {
  auto finish = wait(std::move(done),
                     fmt::format("sessions of {} were told to end, but still have commands at the "
                                 "disk after {} s",
                                 name, end_deadline_s));
  at_home([name = std::move(name), finish](TargetServer& server) {
    server.remove_target(name, [finish] { finish({}); });
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

std::function<void(Status)> Serving::wait(std::function<void(Status)> done, std::string late) {
  const uint64_t number = ++waits_->last;
  auto finish = [&control = control_, waits = std::weak_ptr(waits_), number](Status status) {
    control.post([waits, number, status = std::move(status)] {
      if (const auto alive = waits.lock()) alive->finish(number, status);
    });
  };
  auto deadline = std::make_unique<Timer>(
      control_, [finish, late = std::move(late)] { finish(fail(rpc::Errc::timeout, "{}", late)); });
  deadline->arm_after(end_deadline);
  waits_->waiting[number] = {std::move(done), std::move(deadline)};
  return finish;
}

void Serving::end_sessions(std::string initiator_name, std::string target_name, Error reason,
                           std::function<void(Status)> done) {
  auto finish =
      wait(std::move(done),
           fmt::format("the change is in force, but old sessions of {} still have commands at the "
                       "disk after {} s; nobody can log in there before these have ended",
                       target_name.empty() ? initiator_name : target_name, end_deadline_s));
  at_home([initiator_name = std::move(initiator_name), target_name = std::move(target_name),
           reason = std::move(reason), finish](TargetServer& server) {
    server.end_sessions(initiator_name, target_name, reason, [finish](size_t) { finish({}); });
  });
}

void Serving::end_session(SessionId session, Error reason, std::function<void(Status)> done) {
  auto finish = wait(std::move(done),
                     fmt::format("session {} was told to end, but still has commands at the disk "
                                 "after {} s; it ends with the last of them, and nobody can log in "
                                 "to its target before that",
                                 session, end_deadline_s));
  at_home([session, reason = std::move(reason), finish](TargetServer& server) {
    server.end_session(session, reason, [session, finish](bool found) {
      finish(found ? Status() : fail(rpc::Errc::not_found, "there is no session {}", session));
    });
  });
}

}  // namespace vjbod::target
