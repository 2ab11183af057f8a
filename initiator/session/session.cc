// SPDX-License-Identifier: Apache-2.0
#include "initiator/session/session.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/iscsi/errc.h"
#include "common/iscsi/pdu_codec.h"

namespace vjbod::initiator {

using iscsi::Errc;

namespace {

constexpr uint32_t slot_index_bits = 10;
constexpr uint32_t slot_index_mask = (1u << slot_index_bits) - 1;
constexpr uint32_t slot_uses_mask = (1u << 21) - 1;  // the tag's top bit stays clear
constexpr uint32_t control_tag_bit = 0x80000000;
static_assert(session_commands_max <= slot_index_mask + 1);

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

Session::Session(Reactor& reactor, std::unique_ptr<transport::DataMover> mover,
                 const SessionConfig& config, uint32_t commands_max, std::string_view log_prefix,
                 SessionEvents& events)
    : reactor_(reactor),
      mover_(std::move(mover)),
      config_(config.copy()),
      events_(events),
      log_(std::string(log_prefix)),
      credit_(SerialNumber(static_cast<uint32_t>(reactor.random().next()))),
      slots_(commands_max),
      deadline_(reactor, [this] { on_deadline(); }),
      keepalive_(reactor, [this] { on_keepalive(); }),
      command_timer_(reactor, [this] { on_command_timer(); }) {
  VJBOD_CHECK(commands_max > 0 && commands_max <= session_commands_max);
  free_slots_.reserve(commands_max);
  for (uint32_t i = commands_max; i-- > 0;) free_slots_.push_back(static_cast<uint16_t>(i));
}

Session::~Session() {
  VJBOD_CHECK(state_ == State::idle || state_ == State::closed,
              "session destroyed before it was closed");
}

void Session::start() {
  VJBOD_CHECK(state_ == State::idle);
  state_ = State::logging_in;
  last_alive_ = reactor_.now();
  deadline_.arm_after(config_.timers.login_timeout);
  mover_->start(*this);
  login_.emplace(login_settings());
  take_login_step(login_->start());
}

void Session::close(const Error& reason) {
  switch (state_) {
    case State::full_feature: break;
    case State::logging_in: return abort(reason);
    default: return;  // on its way already
  }
  state_ = State::draining;
  close_reason_ = reason;
  if (commands_under_way_ == 0) return send_logout();
  deadline_.arm_after(config_.timers.drain_timeout);
}

void Session::abort(const Error& reason) {
  if (state_ == State::idle) {
    // Nothing was lent and nobody else knows the mover: start it only to close it.
    mover_->start(*this);
  } else if (state_ == State::terminating || state_ == State::closed) {
    return;
  }
  state_ = State::terminating;
  deadline_.cancel();
  keepalive_.cancel();
  command_timer_.cancel();
  mover_->terminate(reason);
}

void Session::on_closed(const Error& reason) {
  const State was = state_;
  state_ = State::closed;
  deadline_.cancel();
  keepalive_.cancel();
  command_timer_.cancel();
  while (!issued_.empty()) issued_.pop_front();
  commands_under_way_ = 0;
  text_done_ = nullptr;
  Error why = reason;
  if (was == State::logging_out) {
    why = close_reason_;  // however it ended, it ended because we wanted it to
  } else if (failure_) {
    why = failure_->error;
  } else if (was == State::logging_in) {
    why.text = fmt::format("The connection to {} was lost during the login: {}", mover_->peer(),
                           reason.text);
  }
  const bool permanent = failure_ && failure_->verdict == iscsi::LoginVerdict::permanent;
  log_.info("session with {} is closed: {}", mover_->peer(), why.text);
  events_.on_session_closed(why, permanent);
}

// --- login ---

LoginSettings Session::login_settings() const {
  LoginSettings settings;
  settings.initiator_name = config_.initiator_name;
  settings.target_name = config_.target_name;
  settings.isid = config_.isid;
  settings.itt = control_tag_bit;
  settings.cmd_sn = credit_.current();
  if (config_.chap) settings.chap = config_.chap->copy();
  if (config_.mutual) settings.mutual = config_.mutual->copy();
  settings.chap_algorithms = config_.chap_algorithms;
  settings.capabilities = mover_->capabilities();
  settings.wishes.header_digest = config_.header_digest;
  settings.wishes.data_digest = config_.data_digest;
  settings.wishes.initial_r2t = settings.capabilities.requires_initial_r2t;
  settings.wishes.rdma_extensions = settings.capabilities.rdma_extensions;
  settings.wishes.max_recv_data_segment_length = settings.capabilities.max_recv_data_segment_length;
  // As much of a write as fits one PDU goes with the command and saves a round trip.
  settings.wishes.first_burst_length = settings.capabilities.max_recv_data_segment_length;
  settings.fill_random = config_.fill_random;
  return settings;
}

void Session::take_login_step(const LoginStep& step) {
  if (step.request) mover_->send_control(*step.request, as_bytes(std::string_view(step.data)));
  switch (step.state) {
    case LoginState::in_progress: return;
    case LoginState::done: return login_done();
    case LoginState::failed:
      failure_ = login_->failure();
      failure_->error.text =
          fmt::format("The login to {} at {} failed: {}.",
                      config_.target_name.empty() ? "the discovery service" : config_.target_name,
                      mover_->peer(), failure_->error.text);
      return abort(failure_->error);
  }
}

void Session::login_done() {
  const LoginResult& result = login_->result();
  parameters_ = result.parameters;
  credit_ = iscsi::CommandCredit(result.cmd_sn);
  status_.start(result.exp_stat_sn - 1);
  numbers_.exp_stat_sn = result.exp_stat_sn;
  mover_->enable_full_feature(parameters_, numbers_);
  // Some targets count the login as a command here, but not when they number the commands.
  const bool login_counted = result.exp_cmd_sn == result.cmd_sn + 1;
  if (!credit_.update(login_counted ? result.cmd_sn : result.exp_cmd_sn, result.max_cmd_sn))
    return protocol_error(
        fmt::format("acknowledged commands up to CmdSN {} in a login that was sent "
                    "with CmdSN {}",
                    result.exp_cmd_sn.value, result.cmd_sn.value));
  state_ = State::full_feature;
  deadline_.cancel();
  keepalive_.arm_after(config_.timers.keepalive_idle);
  if (!can_issue()) note_window_closed();
  log_.info("logged in to {} at {} over {} (TSIH {})", config_.target_name, mover_->peer(),
            transport::name_of(kind()), result.tsih);
  login_.reset();
  if (config_.fence_lun) return send_fence();
  events_.on_logged_in();
}

// --- commands ---

void Session::issue(ChannelCommand& command) {
  VJBOD_CHECK(can_issue());
  const uint16_t index = free_slots_.back();
  free_slots_.pop_back();
  Slot& slot = slots_[index];
  slot.command = &command;
  slot.uses = (slot.uses + 1) & slot_uses_mask;
  slot.issued_at = reactor_.now();
  command.itt = slot.uses << slot_index_bits | index;
  issued_.push_back(command);
  ++commands_under_way_;
  if (!command_timer_.armed()) command_timer_.arm_after(config_.timers.command_timeout);

  iscsi::ScsiCommand pdu;
  pdu.read = !command.read.empty();
  pdu.write = !command.write.empty();
  pdu.lun = command.lun;
  pdu.itt = command.itt;
  const size_t length = command.read.size() + command.write.size();
  VJBOD_CHECK(length <= UINT32_MAX && !(pdu.read && pdu.write));
  pdu.expected_data_transfer_length = static_cast<uint32_t>(length);
  pdu.cmd_sn = credit_.take();
  pdu.exp_stat_sn = numbers_.exp_stat_sn;
  pdu.cdb = command.cdb;
  if (!can_issue()) note_window_closed();
  mover_->begin_task(pdu, command.write, command.read);
}

void Session::note_window_closed() {
  window_was_closed_ = true;
  window_closed_at_ = reactor_.now();
}

Session::Slot* Session::find_slot(uint32_t itt) {
  const uint32_t index = itt & slot_index_mask;
  if (index >= slots_.size()) return nullptr;
  Slot& slot = slots_[index];
  return slot.command != nullptr && slot.command->itt == itt ? &slot : nullptr;
}

// --- sending ---

uint32_t Session::next_control_tag() {
  // Never the login's tag and never the reserved one.
  control_tags_ = control_tags_ % 0x7ffffff0 + 1;
  return control_tag_bit | control_tags_;
}

void Session::send(iscsi::Pdu pdu, ConstBytes data) {
  iscsi::stamp_cmd_sn(pdu, credit_.current());
  iscsi::stamp_exp_stat_sn(pdu, numbers_.exp_stat_sn);
  mover_->send_control(pdu, data);
}

void Session::send_ping() {
  iscsi::NopOut ping;
  ping.immediate = true;
  ping.itt = ping_tag_ = next_control_tag();
  ping_sent_at_ = reactor_.now();
  send(ping);
}

void Session::send_fence() {
  iscsi::TaskManagementRequest request;
  request.function = iscsi::TaskManagementFunction::abort_task_set;
  request.lun = *config_.fence_lun;
  request.itt = fence_tag_ = next_control_tag();
  deadline_.arm_after(config_.timers.fence_timeout);
  send(request);
}

void Session::send_logout() {
  state_ = State::logging_out;
  keepalive_.cancel();
  deadline_.arm_after(config_.timers.logout_timeout);
  iscsi::LogoutRequest logout;
  logout.immediate = true;
  logout.reason = iscsi::LogoutReason::close_session;
  logout.itt = logout_tag_ = next_control_tag();
  send(logout);
}

void Session::send_text(const std::string& text, TextDone done) {
  VJBOD_CHECK(state_ == State::full_feature && text_tag_ == iscsi::reserved_tag);
  VJBOD_CHECK(text.size() <= parameters_.peer_max_recv_data_segment_length);
  text_.clear();
  text_done_ = std::move(done);
  iscsi::TextRequest request;
  request.immediate = true;
  request.final = true;
  request.itt = text_tag_ = next_control_tag();
  send(request, as_bytes(text));
}

// --- time ---

void Session::on_deadline() {
  switch (state_) {
    case State::logging_in:
      return abort(
          {Errc::timed_out, fmt::format("{} did not finish the login within {:.0f} s.",
                                        mover_->peer(), seconds(config_.timers.login_timeout))});
    case State::full_feature:
      return abort({Errc::timed_out,
                    fmt::format("{} has not ended what an earlier session left there within {:.0f} "
                                "s.",
                                mover_->peer(), seconds(config_.timers.fence_timeout))});
    case State::draining:
      // What did not come in is got back by closing; the logout is only politeness now.
      log_.info("{} commands did not come in before the logout", commands_under_way_);
      return send_logout();
    case State::logging_out: return abort(close_reason_);
    default: return;
  }
}

// A target that has answered everything and still takes nothing will never be asked anything
// again: that must end, too.
bool Session::window_is_stuck() const {
  return state_ == State::full_feature && window_was_closed_ && commands_under_way_ == 0 &&
         reactor_.now() - window_closed_at_ >= config_.timers.command_timeout;
}

void Session::on_keepalive() {
  if (window_is_stuck())
    return abort({Errc::timed_out,
                  fmt::format("{} has answered everything and taken no command for {:.0f} s.",
                              mover_->peer(), seconds(config_.timers.command_timeout))});
  const TimePoint now = reactor_.now();
  const Duration silent = now - last_alive_;
  const SessionTimers& timers = config_.timers;
  if (silent < timers.keepalive_idle) return keepalive_.arm_at(last_alive_ + timers.keepalive_idle);
  // Asked before it is given up, however long it was silent: it may be we who were stopped.
  const bool asked = ping_tag_ != iscsi::reserved_tag && ping_sent_at_ >= last_alive_;
  if (!asked) {
    if (ping_tag_ == iscsi::reserved_tag)
      send_ping();
    else
      ping_sent_at_ = now;  // an older one still waits for its answer
    keepalive_.arm_at(now + timers.keepalive_timeout);
  } else if (now - ping_sent_at_ < timers.keepalive_timeout) {
    keepalive_.arm_at(ping_sent_at_ + timers.keepalive_timeout);
  } else {
    abort({Errc::timed_out,
           fmt::format("{} has not sent a byte for {:.0f} s.", mover_->peer(), seconds(silent))});
  }
}

void Session::on_command_timer() {
  if (issued_.empty()) return;
  const Slot& oldest = slots_[issued_.front().itt & slot_index_mask];
  const TimePoint due = oldest.issued_at + config_.timers.command_timeout;
  if (reactor_.now() < due) return command_timer_.arm_at(due);
  abort({Errc::timed_out, fmt::format("{} is alive but has not answered a command for {:.0f} s.",
                                      mover_->peer(), seconds(reactor_.now() - oldest.issued_at))});
}

void Session::protocol_error(const std::string& what) {
  abort({Errc::protocol, fmt::format("{} {}.", mover_->peer(), what)});
}

}  // namespace vjbod::initiator
