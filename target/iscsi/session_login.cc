// SPDX-License-Identifier: Apache-2.0
// A session's login phase: moves PDUs between the mover and the login machine, and asks for
// admission in between.
#include "common/iscsi/errc.h"
#include "target/iscsi/session.h"

namespace vjbod::target {

namespace {

LoginSettings login_settings(const transport::Capabilities& capabilities,
                             const ServerLimits& limits) {
  LoginSettings settings;
  settings.capabilities = capabilities;
  settings.target_portal_group_tag = portal_group_tag;
  settings.command_window = limits.command_window;
  settings.fill_random = fill_secure_random;
  settings.wishes.header_digest =
      capabilities.digests ? iscsi::DigestWish::prefer : iscsi::DigestWish::none;
  settings.wishes.data_digest = settings.wishes.header_digest;
  settings.wishes.max_burst_length = limits.max_burst_length;
  settings.wishes.first_burst_length = limits.first_burst_length;
  settings.wishes.max_recv_data_segment_length = capabilities.max_recv_data_segment_length;
  return settings;
}

}  // namespace

void Session::on_login_request(const iscsi::LoginRequest& request, ConstBytes data) {
  if (!login_) {
    login_policy_ = host_.view()->access;
    login_ = std::make_unique<LoginMachine>(login_settings(mover_->capabilities(), host_.limits()),
                                            *login_policy_);
  }
  take(login_->on_request(request, data));
}

void Session::take(LoginStep step) {
  if (step.response) mover_->send_control(*step.response, as_bytes(step.data));
  switch (step.state) {
    case LoginState::in_progress: return;
    case LoginState::admission_pending:
      state_ = State::admission;
      host_.on_admission_wanted(*this);
      return;
    case LoginState::done: return;
    case LoginState::failed: terminate(login_->error()); return;
  }
}

void Session::refuse(iscsi::LoginStatus status, std::string_view reason) {
  if (state_ != State::admission) return;
  take(login_->refuse(status, reason));
}

void Session::admit(uint16_t tsih) {
  if (state_ != State::admission)
    return;  // closing already; the registry hears it by on_session_gone
  const LoginOutcome& outcome = login_->outcome();
  if (!outcome.parameters.discovery) {
    // Looked up now, not at the login's start: the target may have changed meanwhile.
    const auto view = host_.view();
    const auto target = view->targets.find(outcome.target_name);
    if (target == view->targets.end()) {
      refuse(iscsi::LoginStatus::not_found, "the target has been removed");
      return;
    }
    auto nexus = scsi::Nexus::open(reactor_, target->second,
                                   host_.limits().command_window + immediate_commands_max, *this);
    if (!nexus) {
      refuse(iscsi::LoginStatus::out_of_resources, nexus.error().text);
      return;
    }
    nexus_ = std::move(*nexus);
  }
  // The session is ready for its first command before the initiator learns that it may send one.
  // Twice the window: a finished task keeps its slot until its last data has left, and by then the
  // initiator may have been told of room for another.
  const size_t slots = 2 * host_.limits().command_window + immediate_commands_max;
  tasks_ = std::vector<CommandTask>(slots);
  handles_.assign(slots, transport::no_task);
  free_slots_.reserve(slots);
  for (size_t slot = slots; slot-- > 0;) {
    tasks_[slot].slot = static_cast<uint16_t>(slot);
    free_slots_.push_back(static_cast<uint16_t>(slot));
  }
  LoginStep last = login_->admit(tsih);  // settles the numbers that full feature phase begins with
  tsih_ = tsih;
  window_.emplace(outcome.exp_cmd_sn, host_.limits().command_window, immediate_commands_max);
  numbers_.stat_sn = outcome.next_stat_sn;
  update_window();
  state_ = State::full_feature;
  deadline_.cancel();
  last_heard_ = since_ = reactor_.now();
  keepalive_.arm_after(host_.limits().keepalive_idle);
  log_.set_prefix(fmt::format("session {} {} {}", id_, mover_->peer(), outcome.initiator_name));
  take(std::move(last));
  mover_->enable_full_feature(outcome.parameters, numbers_);
  host_.on_session_opened(*this);
}

}  // namespace vjbod::target
