// SPDX-License-Identifier: Apache-2.0
#include "initiator/session/supervisor.h"

#include <utility>

#include "common/base/check.h"
#include "common/iscsi/errc.h"

namespace vjbod::initiator {

using iscsi::Errc;

namespace {

CloseKind close_kind(const LoginFailure* failure, bool other_algorithms) {
  if (failure == nullptr) return CloseKind::lost;
  if (failure->verdict == iscsi::LoginVerdict::redirect) return CloseKind::redirect;
  if (failure->at_chap && other_algorithms) return CloseKind::at_chap;
  if (failure->verdict != iscsi::LoginVerdict::permanent) return CloseKind::lost;
  // Where it was we who gave up, too: then it is our settings, or what the target makes of them.
  const bool misfit =
      failure->error.code == Errc::authentication || failure->status == iscsi::LoginStatus::success;
  return misfit ? CloseKind::misfit : CloseKind::refused;
}

}  // namespace

Supervisor::Supervisor(Reactor& reactor, const Connectors& connectors, SupervisorConfig config,
                       SupervisorClient& client)
    : reactor_(reactor),
      connectors_(connectors),
      config_(std::move(config)),
      client_(client),
      log_(config_.name),
      machine_(config_.paths, config_.backoff, reactor.random().fork(), config_.known),
      sleep_(reactor, [this] { input({SupervisorEvent::time_over}); }) {}

Supervisor::~Supervisor() {
  VJBOD_CHECK(at_rest(), "supervisor of {} destroyed while {}", config_.name, name_of(state()));
}

void Supervisor::set_paths(std::vector<PathCandidate> paths) {
  config_.paths = paths;
  machine_.set_paths(std::move(paths));
}

void Supervisor::set_session(SessionConfig session) {
  config_.session = std::move(session);
  machine_.forget_algorithms();
}

std::optional<TimePoint> Supervisor::next_attempt_at() const {
  if (!sleep_.armed()) return std::nullopt;
  return sleep_.deadline();
}

void Supervisor::input(SupervisorInput input) {
  inputs_.push_back(std::move(input));
  if (working_) return;
  working_ = true;
  while (!inputs_.empty()) {
    SupervisorInput next = std::move(inputs_.front());
    inputs_.pop_front();
    next.now = reactor_.now();
    const SupervisorState before = machine_.state();
    const std::vector<SupervisorAction> actions = machine_.handle(next);
    if (machine_.state() != before)
      log_.debug("{}: {} -> {}", name_of(next.event), name_of(before), name_of(machine_.state()));
    for (const SupervisorAction& action : actions) perform(action);
  }
  working_ = false;
  client_.on_supervisor_changed();
}

void Supervisor::fail_with(SupervisorEvent event, const Error& why) {
  note_error(why);
  close_reason_ = why;
  input({event});
}

void Supervisor::perform(const SupervisorAction& action) {
  switch (action.kind) {
    case SupervisorAction::Kind::connect: return connect(action.path);
    case SupervisorAction::Kind::abandon_connect: attempt_.reset(); return;
    case SupervisorAction::Kind::log_in: return log_in(action.md5_only);
    case SupervisorAction::Kind::probe:
      announced_ = true;
      client_.on_probe(*session_, generation_);
      return;
    case SupervisorAction::Kind::go_online:
      log_.info("online over {} at {}, session {}", transport::name_of(session_->kind()),
                session_->peer(), generation_);
      last_logged_.clear();
      answered_before_online_ = session_->commands_answered();
      client_.on_online();
      return;
    case SupervisorAction::Kind::close_session: {
      const Error by_hand{Errc::closed_locally, "The session was closed by this host."};
      session_->close(close_reason_.code ? std::exchange(close_reason_, {}) : by_hand);
      return;
    }
    case SupervisorAction::Kind::sleep: sleep_.arm_after(action.delay); return;
    case SupervisorAction::Kind::cancel_sleep: sleep_.cancel(); return;
  }
}

void Supervisor::connect(const PathCandidate& path) {
  path_ = path;
  transport::Connector* connector = connectors_.of(path.kind);
  if (connector == nullptr) {
    note_error({Errc::connection_lost,
                fmt::format("{} is not available on this host.", transport::name_of(path.kind))});
    input({SupervisorEvent::connect_failed});
    return;
  }
  attempt_ = connector->connect(path.endpoint, config_.session.timers.connect_timeout,
                                [this](Result<std::unique_ptr<transport::DataMover>> mover) {
                                  on_connect_done(std::move(mover));
                                });
}

void Supervisor::on_connect_done(Result<std::unique_ptr<transport::DataMover>> mover) {
  // The attempt is still on the stack below us.
  retired_attempts_.push_back(std::move(attempt_));
  reactor_.defer(*this);
  if (!mover) {
    note_error(mover.error());
    return input({SupervisorEvent::connect_failed});
  }
  mover_ = std::move(*mover);
  input({SupervisorEvent::connected});
  mover_.reset();  // nobody wanted it any more
}

void Supervisor::log_in(bool md5_only) {
  ++generation_;
  announced_ = false;
  SessionConfig session = config_.session.copy();
  if (md5_only)
    session.chap_algorithms.assign(iscsi::chap_algorithms_md5_only.begin(),
                                   iscsi::chap_algorithms_md5_only.end());
  SessionEvents& events = *this;
  session_ =
      std::make_unique<Session>(reactor_, std::move(mover_), session, config_.commands_max,
                                fmt::format("{} session {}", config_.name, generation_), events);
  session_->start();
}

void Supervisor::on_logged_in() {
  input({SupervisorEvent::logged_in});
}

void Supervisor::on_session_closed(const Error& reason, bool) {
  SupervisorInput closed{SupervisorEvent::session_closed};
  closed.close = close_kind(session_->login_failure(), config_.session.chap_md5_retry);
  closed.was_useful =
      machine_.was_online() && session_->commands_answered() > answered_before_online_;
  if (closed.close == CloseKind::redirect)
    closed.redirect_address = session_->login_failure()->redirect_address;
  if (reason.code != Errc::closed_locally) note_error(reason);
  retired_.push_back(std::move(session_));
  reactor_.defer(*this);
  // The memory is free before anything new begins.
  if (std::exchange(announced_, false)) client_.on_session_down(generation_, reason);
  input(std::move(closed));
}

void Supervisor::note_error(const Error& error) {
  last_error_ = {error, reactor_.now()};
  // A dead target gives the same sentence every few seconds; once is enough for people.
  if (error.text == last_logged_) return log_.debug("{}", error.text);
  last_logged_ = error.text;
  log_.warn("{}", error.text);
}

}  // namespace vjbod::initiator
