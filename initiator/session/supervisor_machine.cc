// SPDX-License-Identifier: Apache-2.0
#include "initiator/session/supervisor_machine.h"

#include <algorithm>
#include <utility>

namespace vjbod::initiator {

using Event = SupervisorEvent;
using State = SupervisorState;
using ActionKind = SupervisorAction::Kind;

const char* name_of(SupervisorState state) {
  switch (state) {
    case State::stopped: return "stopped";
    case State::connecting: return "connecting";
    case State::logging_in: return "logging_in";
    case State::probing: return "probing";
    case State::online: return "online";
    case State::draining: return "draining";
    case State::backing_off: return "backing_off";
    case State::failed: return "failed";
    case State::stale: return "stale";
  }
  return "unknown";
}

const char* name_of(SupervisorEvent event) {
  switch (event) {
    case Event::start: return "start";
    case Event::stop: return "stop";
    case Event::reconnect: return "reconnect";
    case Event::connected: return "connected";
    case Event::connect_failed: return "connect_failed";
    case Event::logged_in: return "logged_in";
    case Event::probe_wanted: return "probe_wanted";
    case Event::probe_passed: return "probe_passed";
    case Event::probe_failed: return "probe_failed";
    case Event::no_such_disk: return "no_such_disk";
    case Event::identity_changed: return "identity_changed";
    case Event::writes_lost: return "writes_lost";
    case Event::session_closed: return "session_closed";
    case Event::time_over: return "time_over";
  }
  return "unknown";
}

SupervisorMachine::SupervisorMachine(std::vector<PathCandidate> paths, BackoffLimits limits,
                                     Random random, bool known)
    : plan_(std::move(paths)), backoff_(limits), random_(random), known_(known) {}

void SupervisorMachine::set_paths(std::vector<PathCandidate> paths) {
  plan_ = TransportPlan(std::move(paths));
}

std::vector<SupervisorAction> SupervisorMachine::handle(const SupervisorInput& input) {
  const State before = state_;
  Actions actions;
  switch (state_) {
    case State::stopped:
    case State::failed:
    case State::stale: actions = in_stopped(input); break;
    case State::connecting: actions = in_connecting(input); break;
    case State::logging_in: actions = in_logging_in(input); break;
    case State::probing: actions = in_probing(input); break;
    case State::online: actions = in_online(input); break;
    case State::draining: actions = in_draining(input); break;
    case State::backing_off: actions = in_backing_off(input); break;
  }
  if (state_ != before) {
    since_ = input.now;
    if (state_ == State::online && !was_online_) came_online(input.now);
    if (state_ == State::online) was_online_ = known_ = true;
    transitions_.add(input.now.time_since_epoch(), name_of(input.event), name_of(before),
                     name_of(state_));
  }
  return actions;
}

SupervisorMachine::Actions SupervisorMachine::in_stopped(const SupervisorInput& input) {
  if (input.event == Event::start) return begin_anew(input.now);
  if (input.event == Event::stop) enter(State::stopped);
  return {};
}

SupervisorMachine::Actions SupervisorMachine::in_connecting(const SupervisorInput& input) {
  switch (input.event) {
    case Event::connected: {
      if (should_look_at_rdma_again()) {
        looked_again_ = true;
        begin_round();
        return try_next_path(input.now);  // nobody takes the connection that is there
      }
      enter(State::logging_in);
      SupervisorAction log_in{ActionKind::log_in, {}, {}, md5_only_};
      // After a loss the target may have to wait for the old session's last write.
      if (path_.kind == transport::Kind::iser && plan_.has_other_than_rdma() && !ever_online_ &&
          rdma_until_)
        log_in.limit = std::max(*rdma_until_ - input.now, rdma_login_min);
      return {log_in};
    }
    case Event::connect_failed:
      if (path_.kind == transport::Kind::iser) rdma_failed_.push_back(path_.endpoint);
      return try_next_path(input.now);
    case Event::stop: enter(State::stopped); return {{ActionKind::abandon_connect}};
    case Event::start:
    case Event::reconnect: {
      Actions actions{{ActionKind::abandon_connect}};
      for (SupervisorAction& action : begin_anew(input.now)) actions.push_back(std::move(action));
      return actions;
    }
    default: return {};
  }
}

SupervisorMachine::Actions SupervisorMachine::in_logging_in(const SupervisorInput& input) {
  switch (input.event) {
    case Event::logged_in:
      misfits_ = 0;
      others_tried_ = false;
      enter(State::probing);
      return {{ActionKind::probe}};
    case Event::session_closed: return session_lost(input);
    case Event::stop: return close_session(State::stopped);
    default: return {};
  }
}

SupervisorMachine::Actions SupervisorMachine::in_probing(const SupervisorInput& input) {
  switch (input.event) {
    case Event::probe_passed:
      if (!was_online_) attempts_ = 0;
      enter(State::online);
      return {{ActionKind::go_online}};
    case Event::probe_failed:
      if (path_.kind == transport::Kind::iser) rdma_failed_.push_back(path_.endpoint);
      return close_session(State::backing_off);
    case Event::no_such_disk: return close_session(known_ ? State::backing_off : State::failed);
    case Event::identity_changed: return close_session(State::stale);
    case Event::writes_lost: return close_session(State::failed);
    case Event::session_closed: return session_lost(input);
    case Event::stop: return close_session(State::stopped);
    default: return {};
  }
}

SupervisorMachine::Actions SupervisorMachine::in_online(const SupervisorInput& input) {
  switch (input.event) {
    case Event::session_closed: return session_lost(input);
    case Event::probe_wanted: enter(State::probing); return {{ActionKind::probe}};
    case Event::reconnect: return close_session(State::connecting);
    case Event::stop: return close_session(State::stopped);
    default: return {};
  }
}

SupervisorMachine::Actions SupervisorMachine::in_draining(const SupervisorInput& input) {
  switch (input.event) {
    case Event::stop: goal_ = State::stopped; return {};
    case Event::start: goal_ = State::connecting; return {};
    case Event::reconnect:
      // A stale LUN or lost writes are for a person to look at first.
      if (goal_ == State::backing_off) goal_ = State::connecting;
      return {};
    case Event::session_closed: {
      const bool success = was_success(input);
      was_online_ = false;
      if (goal_ == State::connecting) return begin_anew(input.now);
      if (goal_ == State::backing_off) {
        if (success) backoff_.reset();
        return try_next_path(input.now);
      }
      enter(goal_);
      return {};
    }
    default: return {};
  }
}

SupervisorMachine::Actions SupervisorMachine::in_backing_off(const SupervisorInput& input) {
  switch (input.event) {
    case Event::time_over: begin_round(); return try_next_path(input.now);
    case Event::stop: enter(State::stopped); return {{ActionKind::cancel_sleep}};
    case Event::start:
    case Event::reconnect: {
      Actions actions{{ActionKind::cancel_sleep}};
      for (SupervisorAction& action : begin_anew(input.now)) actions.push_back(std::move(action));
      return actions;
    }
    default: return {};
  }
}

bool SupervisorMachine::was_success(const SupervisorInput& closed) const {
  return was_online_ && (closed.was_useful || closed.now - online_since_ >= online_stable);
}

SupervisorMachine::Actions SupervisorMachine::begin_anew(TimePoint now) {
  backoff_.reset();
  begin_round();
  attempts_ = 0;
  misfits_ = 0;
  others_tried_ = false;
  was_online_ = false;
  return try_next_path(now);
}

void SupervisorMachine::begin_round() {
  plan_.restart();
  rdma_failed_.clear();
  rdma_until_.reset();
}

SupervisorMachine::Actions SupervisorMachine::try_next_path(TimePoint now) {
  const PathCandidate* path = plan_.next();
  while (path != nullptr && path->kind == transport::Kind::iser && plan_.has_other_than_rdma() &&
         memory_.avoided_until(path->endpoint, now))
    path = plan_.next();
  if (path == nullptr) return back_off();
  return connect(*path, now);
}

SupervisorMachine::Actions SupervisorMachine::connect(PathCandidate path, TimePoint now) {
  const size_t rdma_left = plan_.rdma_left() + 1;
  path_ = std::move(path);
  ++attempts_;
  enter(State::connecting);
  SupervisorAction action{ActionKind::connect, path_};
  if (path_.kind == transport::Kind::iser && plan_.has_other_than_rdma()) {
    if (!rdma_until_) rdma_until_ = now + rdma_round_max;
    action.limit = std::max<Duration>((*rdma_until_ - now) / static_cast<int64_t>(rdma_left),
                                      rdma_attempt_min);
  }
  return {action};
}

bool SupervisorMachine::should_look_at_rdma_again() const {
  return path_.kind != transport::Kind::iser && rdma_lost_ && !looked_again_ &&
         !rdma_failed_.empty();
}

void SupervisorMachine::came_online(TimePoint now) {
  online_since_ = now;
  ever_online_ = true;
  rdma_lost_ = looked_again_ = false;
  if (path_.kind != transport::Kind::iser)
    for (const transport::Endpoint& way : rdma_failed_) memory_.failed(way, now);
  rdma_failed_.clear();
  rdma_until_.reset();
}

// Of a session that was online.
void SupervisorMachine::note_rdma_loss(const SupervisorInput& closed) {
  if (path_.kind != transport::Kind::iser) return;
  rdma_lost_ = true;
  if (closed.was_useful || closed.now - online_since_ >= rdma_proven)
    memory_.worked(path_.endpoint);
  else
    memory_.failed(path_.endpoint, closed.now);
}

std::optional<TimePoint> SupervisorMachine::rdma_avoided_until(TimePoint now) const {
  std::optional<TimePoint> first;
  for (const PathCandidate& candidate : plan_.candidates()) {
    if (candidate.kind != transport::Kind::iser) continue;
    const auto until = memory_.avoided_until(candidate.endpoint, now);
    if (!until) return std::nullopt;
    if (!first || *until < *first) first = until;
  }
  return first;
}

SupervisorMachine::Actions SupervisorMachine::back_off() {
  enter(State::backing_off);
  return {{ActionKind::sleep, {}, backoff_.next(random_)}};
}

SupervisorMachine::Actions SupervisorMachine::session_lost(const SupervisorInput& input) {
  const bool from_online = was_online_;
  if (was_success(input)) backoff_.reset();
  was_online_ = false;
  if (from_online) {
    note_rdma_loss(input);
    return back_off();
  }
  if (path_.kind == transport::Kind::iser && input.close == CloseKind::lost)
    rdma_failed_.push_back(path_.endpoint);
  switch (input.close) {
    case CloseKind::at_chap:
      md5_only_ = !md5_only_;
      if (!std::exchange(others_tried_, !others_tried_)) return connect(path_, input.now);
      [[fallthrough]];  // neither will do
    case CloseKind::misfit:
      // The same account on another path is the same account.
      if (known_ && ++misfits_ < misfits_max) return back_off();
      enter(State::failed);
      return {};
    case CloseKind::refused:
      if (known_) break;  // it may be on its way up, or not told of us yet
      enter(State::failed);
      return {};
    case CloseKind::redirect:
      plan_.redirect(input.redirect_address);
      return try_next_path(input.now);
    case CloseKind::lost: break;
  }
  return try_next_path(input.now);
}

SupervisorMachine::Actions SupervisorMachine::close_session(SupervisorState goal) {
  goal_ = goal;
  enter(State::draining);
  return {{ActionKind::close_session}};
}

}  // namespace vjbod::initiator
