// SPDX-License-Identifier: Apache-2.0
#include "target/control/serving.h"

#include <utility>

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

void Serving::end_sessions(std::string initiator_name, std::string target_name, Error reason,
                           std::function<void(size_t)> done) {
  at_home([&control = control_, initiator_name = std::move(initiator_name),
           target_name = std::move(target_name), reason = std::move(reason),
           done = std::move(done)](TargetServer& server) {
    server.end_sessions(initiator_name, target_name, reason, [&control, done](size_t count) {
      control.post([done, count] { done(count); });
    });
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
