// SPDX-License-Identifier: Apache-2.0
#include "initiator/session/supervisor_machine.h"

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
    if (state_ == State::online && !was_online_) online_since_ = input.now;
    if (state_ == State::online) was_online_ = known_ = true;
    transitions_.add(input.now.time_since_epoch(), name_of(input.event), name_of(before),
                     name_of(state_));
  }
  return actions;
}

SupervisorMachine::Actions SupervisorMachine::in_stopped(const SupervisorInput& input) {
  if (input.event == Event::start) return begin_anew();
  if (input.event == Event::stop) enter(State::stopped);
  return {};
}

SupervisorMachine::Actions SupervisorMachine::in_connecting(const SupervisorInput& input) {
  switch (input.event) {
    case Event::connected:
      enter(State::logging_in);
      return {{ActionKind::log_in, {}, {}, md5_only_}};
    case Event::connect_failed: return try_next_path();
    case Event::stop: enter(State::stopped); return {{ActionKind::abandon_connect}};
    case Event::start:
    case Event::reconnect: {
      Actions actions{{ActionKind::abandon_connect}};
      for (SupervisorAction& action : begin_anew()) actions.push_back(std::move(action));
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
    case Event::probe_failed: return close_session(State::backing_off);
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
      if (goal_ == State::connecting) return begin_anew();
      if (goal_ == State::backing_off) {
        if (success) backoff_.reset();
        return try_next_path();
      }
      enter(goal_);
      return {};
    }
    default: return {};
  }
}

SupervisorMachine::Actions SupervisorMachine::in_backing_off(const SupervisorInput& input) {
  switch (input.event) {
    case Event::time_over: plan_.restart(); return try_next_path();
    case Event::stop: enter(State::stopped); return {{ActionKind::cancel_sleep}};
    case Event::start:
    case Event::reconnect: {
      Actions actions{{ActionKind::cancel_sleep}};
      for (SupervisorAction& action : begin_anew()) actions.push_back(std::move(action));
      return actions;
    }
    default: return {};
  }
}

bool SupervisorMachine::was_success(const SupervisorInput& closed) const {
  return was_online_ && (closed.was_useful || closed.now - online_since_ >= online_stable);
}

SupervisorMachine::Actions SupervisorMachine::begin_anew() {
  backoff_.reset();
  plan_.restart();
  attempts_ = 0;
  misfits_ = 0;
  others_tried_ = false;
  was_online_ = false;
  return try_next_path();
}

SupervisorMachine::Actions SupervisorMachine::try_next_path() {
  const PathCandidate* path = plan_.next();
  if (path == nullptr) return back_off();
  return connect(*path);
}

SupervisorMachine::Actions SupervisorMachine::connect(PathCandidate path) {
  path_ = std::move(path);
  ++attempts_;
  enter(State::connecting);
  return {{ActionKind::connect, path_}};
}

SupervisorMachine::Actions SupervisorMachine::back_off() {
  enter(State::backing_off);
  return {{ActionKind::sleep, {}, backoff_.next(random_)}};
}

SupervisorMachine::Actions SupervisorMachine::session_lost(const SupervisorInput& input) {
  const bool from_online = was_online_;
  if (was_success(input)) backoff_.reset();
  was_online_ = false;
  if (from_online) return back_off();
  switch (input.close) {
    case CloseKind::at_chap:
      md5_only_ = !md5_only_;
      if (!std::exchange(others_tried_, !others_tried_)) return connect(path_);
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
    case CloseKind::redirect: plan_.redirect(input.redirect_address); return try_next_path();
    case CloseKind::lost: break;
  }
  return try_next_path();
}

SupervisorMachine::Actions SupervisorMachine::close_session(SupervisorState goal) {
  goal_ = goal;
  enter(State::draining);
  return {{ActionKind::close_session}};
}

}  // namespace vjbod::initiator
