// SPDX-License-Identifier: Apache-2.0
#include "target/iscsi/target_server.h"

#include <algorithm>
#include <list>
#include <map>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/iscsi/errc.h"
#include "target/iscsi/connection_caps.h"
#include "target/iscsi/report_limit.h"
#include "target/iscsi/shard_sessions.h"

namespace vjbod::target {

namespace {
// Reports of failed logins are limited by address; addresses beyond this number share one limit.
constexpr size_t reported_addresses_max = 256;
}  // namespace

struct TargetServer::Impl final : ShardEvents, std::enable_shared_from_this<Impl> {
  Impl(Reactor& home_reactor, std::vector<SessionPlace> where, const ServerLimits& limits,
       ServerEvents& server_events)
      : home(home_reactor),
        places(std::move(where)),
        events(server_events),
        caps(limits.connections_max, limits.connections_per_address_max) {}

  void make_shards(const ServerLimits& limits) {
    ToHome to_home = [self = weak_from_this(),
                      &reactor = home](std::function<void(ShardEvents&)> work) {
      reactor.post([self, work = std::move(work)] {
        if (auto alive = self.lock()) work(*alive);
      });
    };
    for (size_t place = 0; place < places.size(); ++place) {
      shards.push_back(
          std::make_shared<ShardSessions>(place, places.size(), places[place], limits, to_home));
      load.push_back(0);
    }
  }

  // Runs `work` on a shard's thread.
  void on_shard(size_t place, std::function<void(ShardSessions&)> work) {
    places[place].reactor->post([shard = shards[place], work = std::move(work)] { work(*shard); });
  }
  size_t place_of(SessionId session) const { return session % places.size(); }

  void publish() {
    auto snapshot = std::make_shared<const ServerView>(view);
    for (size_t place = 0; place < places.size(); ++place) {
      on_shard(place, [snapshot](ShardSessions& shard) { shard.set_view(snapshot); });
    }
  }

  // Collects sessions told to end by every shard and calls `done` when all of them are gone.
  struct Ending {
    size_t shards_left = 0;
    size_t count = 0;
    std::set<SessionId> waiting;
    std::function<void(size_t)> done;
    bool complete() const { return shards_left == 0 && waiting.empty(); }
  };
  // What the access table of now says of a session, or of a login that wants to be one. Nothing: it
  // may not be.
  std::optional<LoginDecision> admission(const LoginOutcome& login) const {
    LoginDecision decision =
        view.access->decide({login.initiator_name, login.target_name, login.parameters.discovery});
    if (decision.access != LoginDecision::Access::allowed) return std::nullopt;
    if (decision.chap && decision.chap->initiator.user != login.authenticated_user)
      return std::nullopt;
    return decision;
  }
  void end_what_is_not_admitted() {
    const Error reason{iscsi::Errc::closed_locally,
                       "its initiator may not use the target any more"};
    for (const auto& [session, login] : let_in) {
      if (admission(login)) continue;
      registry.ending(session);
      on_shard(place_of(session),
               [session, reason](ShardSessions& shard) { shard.end(session, reason); });
    }
  }
  // What ends is marked here first: no login slips in between.
  void end_sessions(const std::string& initiator_name, const std::string& target_name,
                    const Error& reason, std::function<void(size_t)> done) {
    registry.ending_matching(initiator_name, target_name);
    end_on_all_shards(
        [initiator_name, target_name, reason](ShardSessions& shard) {
          return shard.end_matching(initiator_name, target_name, reason);
        },
        std::move(done));
  }
  void end_on_all_shards(std::function<std::vector<SessionId>(ShardSessions&)> end,
                         std::function<void(size_t)> done) {
    auto ending = std::make_shared<Ending>();
    ending->shards_left = places.size();
    ending->done = std::move(done);
    endings.push_back(ending);
    for (size_t place = 0; place < places.size(); ++place) {
      on_shard(place, [self = shared_from_this(), end, ending](ShardSessions& shard) {
        self->home.post([self, ending, told = end(shard)] {
          ending->waiting.insert(told.begin(), told.end());
          ending->count += told.size();
          --ending->shards_left;
          self->finish_endings();
        });
      });
    }
  }
  void finish_endings() {
    std::vector<std::shared_ptr<Ending>> finished;
    std::erase_if(endings, [&](const std::shared_ptr<Ending>& ending) {
      if (!ending->complete()) return false;
      finished.push_back(ending);
      return true;
    });
    for (auto& ending : finished) ending->done(ending->count);
  }

  void perform(const SessionRegistry::Actions& actions) {
    for (SessionId session : actions.terminate) {
      on_shard(place_of(session), [session](ShardSessions& shard) {
        shard.end(session,
                  {iscsi::Errc::closed_locally, "a newer login of its initiator took its place"});
      });
    }
    for (const SessionRegistry::Refused& refused : actions.refuse) {
      on_shard(place_of(refused.session),
               [refused](ShardSessions& shard) { shard.refuse(refused.session, refused.status); });
    }
    for (const SessionRegistry::Admitted& admitted : actions.admit) {
      on_shard(place_of(admitted.session),
               [admitted](ShardSessions& shard) { shard.admit(admitted.session, admitted.tsih); });
    }
  }

  // ShardEvents
  void on_adopted(SessionId session, const std::string& remote_address) override {
    caps.adopted(session, remote_address);
  }
  void on_not_adopted(size_t place, const std::string& remote_address) override {
    --load[place];
    caps.abandoned(remote_address);
  }
  void on_admission_wanted(SessionId session, const LoginOutcome& outcome) override {
    // Access may have been withdrawn since the login began.
    const std::optional<LoginDecision> decision = admission(outcome);
    if (!decision) {
      on_shard(place_of(session), [session](ShardSessions& shard) {
        shard.refuse(session, iscsi::LoginStatus::authorization_failure);
      });
      return;
    }
    let_in[session] = outcome;
    if (outcome.parameters.discovery) {
      perform(registry.request_discovery(session));
    } else {
      NexusWish wish;
      wish.key = {outcome.initiator_name, outcome.isid, outcome.target_name};
      wish.tsih = outcome.tsih_requested;
      wish.cid = outcome.cid;
      wish.sole = decision->sole_nexus;
      perform(registry.request(session, wish));
    }
  }
  void on_opened(const SessionInfo& session) override {
    caps.logged_in(session.id);
    opened.insert(session.id);
    events.on_session_opened(session);
  }
  void on_ending(SessionId session) override { registry.ending(session); }
  void on_login_failed(const std::string& remote_address, const Error& reason) override {
    const TimePoint now = home.now();
    if (reported.size() >= reported_addresses_max)
      std::erase_if(reported, [now](const auto& entry) { return entry.second.idle(now); });
    const bool own = reported.contains(remote_address) || reported.size() < reported_addresses_max;
    const auto left_out = reported[own ? remote_address : std::string()].next(now);
    if (!left_out) return;
    events.on_login_failed(remote_address, {reason.code, reason.text + left_out_text(*left_out)});
  }
  void on_cold_reset(const std::string& target_name) override {
    end_sessions("", target_name,
                 {iscsi::Errc::closed_locally, "an initiator asked for a cold reset of the target"},
                 [](size_t) {});
  }
  void on_gone(const SessionInfo& session, const Error& reason) override {
    --load[place_of(session.id)];
    caps.ended(session.id);
    perform(registry.ended(session.id));
    let_in.erase(session.id);
    if (opened.erase(session.id) > 0) events.on_session_closed(session, reason);
    for (auto& ending : endings) ending->waiting.erase(session.id);
    finish_endings();
  }

  Reactor& home;
  const std::vector<SessionPlace> places;
  ServerEvents& events;
  std::vector<std::shared_ptr<ShardSessions>> shards;
  std::vector<size_t> load;  // connections by place
  ServerView view;
  SessionRegistry registry;
  ConnectionCaps caps;
  std::map<SessionId, LoginOutcome> let_in;  // past the access table, until they are gone
  std::set<SessionId> opened;
  std::map<std::string, ReportLimit> reported;  // by address
  std::list<std::shared_ptr<Ending>> endings;
  bool shutting_down = false;
};

TargetServer::TargetServer(Reactor& home, std::vector<SessionPlace> places, ServerLimits limits,
                           ServerEvents& events) {
  VJBOD_CHECK(!places.empty());
  impl_ = std::make_shared<Impl>(home, std::move(places), limits, events);
  impl_->make_shards(limits);
}

TargetServer::~TargetServer() = default;

std::optional<size_t> TargetServer::reserve_place(const std::string& remote_address) {
  if (impl_->shutting_down) return std::nullopt;
  const ConnectionCaps::Answer answer = impl_->caps.reserve(remote_address);
  if (answer.evict) {
    impl_->on_shard(impl_->place_of(*answer.evict), [victim = *answer.evict](ShardSessions& shard) {
      shard.end(victim, {iscsi::Errc::timed_out,
                         "a connection that does not log in made way for a newer one"});
    });
  }
  if (!answer.accepted) return std::nullopt;
  const auto least = std::min_element(impl_->load.begin(), impl_->load.end());
  ++*least;
  return static_cast<size_t>(least - impl_->load.begin());
}

void TargetServer::abandon(size_t place, const std::string& remote_address) {
  --impl_->load[place];
  impl_->caps.abandoned(remote_address);
}

void TargetServer::adopt(size_t place, std::string remote_address,
                         std::unique_ptr<transport::DataMover> mover) {
  impl_->shards[place]->adopt(std::move(remote_address), std::move(mover));
}

void TargetServer::set_target(TargetDefinition target) {
  impl_->view.targets[target.name] = std::move(target.luns);
  impl_->publish();
}

void TargetServer::remove_target(const std::string& name, std::function<void()> done) {
  impl_->view.targets.erase(name);
  impl_->publish();
  end_sessions("", name, {iscsi::Errc::closed_locally, "the target has been removed"},
               [done = std::move(done)](size_t) { done(); });
}

void TargetServer::set_access(std::shared_ptr<const AccessTable> access) {
  impl_->view.access = std::move(access);
  impl_->publish();
  impl_->end_what_is_not_admitted();
}

void TargetServer::set_advertised_portals(std::vector<std::string> portals) {
  impl_->view.advertised_portals = std::move(portals);
  impl_->publish();
}

void TargetServer::list_sessions(std::function<void(std::vector<SessionInfo>)> done) {
  struct Gathering {
    size_t left;
    std::vector<SessionInfo> all;
    std::function<void(std::vector<SessionInfo>)> done;
  };
  auto gathering =
      std::make_shared<Gathering>(Gathering{impl_->places.size(), {}, std::move(done)});
  for (size_t place = 0; place < impl_->places.size(); ++place) {
    impl_->on_shard(place, [&home = impl_->home, gathering](ShardSessions& shard) {
      home.post([gathering, some = shard.list()] {
        gathering->all.insert(gathering->all.end(), some.begin(), some.end());
        if (--gathering->left == 0) gathering->done(std::move(gathering->all));
      });
    });
  }
}

void TargetServer::end_sessions(std::string initiator_name, std::string target_name, Error reason,
                                std::function<void(size_t)> done) {
  impl_->end_sessions(initiator_name, target_name, reason, std::move(done));
}

void TargetServer::end_session(SessionId session, Error reason, std::function<void(bool)> done) {
  impl_->registry.ending(session);
  impl_->end_on_all_shards(
      [session, reason = std::move(reason)](ShardSessions& shard) {
        return shard.end(session, reason) ? std::vector<SessionId>{session}
                                          : std::vector<SessionId>{};
      },
      [done = std::move(done)](size_t count) { done(count > 0); });
}

void TargetServer::shutdown(std::function<void()> done) {
  impl_->shutting_down = true;
  impl_->end_on_all_shards([](ShardSessions& shard) { return shard.shut_down(); },
                           [done = std::move(done)](size_t) { done(); });
}

}  // namespace vjbod::target
