// SPDX-License-Identifier: Apache-2.0
#include "initiator/session/supervisor.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/iscsi/errc.h"
#include "common/transport/rdma_errc.h"

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
    case SupervisorAction::Kind::connect: return connect(action.path, action.limit);
    case SupervisorAction::Kind::abandon_connect: attempt_.reset(); return;
    case SupervisorAction::Kind::log_in: return log_in(action.md5_only, action.limit);
    case SupervisorAction::Kind::probe:
      announced_ = true;
      client_.on_probe(*session_, generation_);
      return;
    case SupervisorAction::Kind::go_online:
      log_.info("online over {} at {}, session {}", transport::name_of(session_->kind()),
                session_->peer(), generation_);
      last_logged_.clear();
      if (path_->kind == transport::Kind::iser)
        rdma_failure_.reset();
      else if (rdma_failure_)
        log_.warn("iSCSI instead of iSER, {}: {}",
                  transport::rdma_reason_of(rdma_failure_->error.code), rdma_failure_->error.text);
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

void Supervisor::connect(const PathCandidate& path, std::optional<Duration> limit) {
  path_ = path;
  transport::Connector* connector = connectors_.of(path.kind);
  if (connector == nullptr) {
    const Error error{Errc::connection_lost, fmt::format("{} is not available on this host.",
                                                         transport::name_of(path.kind))};
    note_error(error);
    if (path.kind == transport::Kind::iser)
      note_rdma_failure({transport::RdmaErrc::no_rdma_device, error.text}, false);
    input({SupervisorEvent::connect_failed});
    return;
  }
  const Duration usual = config_.session.timers.connect_timeout;
  attempt_ = connector->connect(path.endpoint, limit ? std::min(*limit, usual) : usual,
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
    if (path_->kind == transport::Kind::iser) note_rdma_failure(mover.error(), false);
    return input({SupervisorEvent::connect_failed});
  }
  mover_ = std::move(*mover);
  input({SupervisorEvent::connected});
  mover_.reset();  // nobody wanted it any more
}

void Supervisor::log_in(bool md5_only, std::optional<Duration> limit) {
  ++generation_;
  announced_ = false;
  SessionConfig session = config_.session.copy();
  if (limit) session.timers.login_timeout = std::min(*limit, session.timers.login_timeout);
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
  if (reason.code != Errc::closed_locally) {
    note_error(reason);
    if (path_->kind == transport::Kind::iser) {
      // Secrets are the same by any transport; whatever else keeps iSER out may not keep iSCSI out.
      if ((closed.close == CloseKind::misfit || closed.close == CloseKind::refused) &&
          reason.code != Errc::authentication)
        closed.close = CloseKind::lost;
      note_rdma_failure(reason, announced_);
    }
  }
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

void Supervisor::note_rdma_failure(Error error, bool logged_in) {
  if (transport::rdma_reason_of(error.code).empty()) {
    // Of the session above RDMA.
    using transport::RdmaErrc;
    error.code = logged_in                       ? RdmaErrc::transfer_failed
                 : error.code == Errc::timed_out ? RdmaErrc::connect_timeout
                                                 : RdmaErrc::login_rejected;
  }
  rdma_failure_ = {std::move(error), reactor_.now()};
}

}  // namespace vjbod::initiator
