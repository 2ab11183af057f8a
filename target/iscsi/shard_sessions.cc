// SPDX-License-Identifier: Apache-2.0
#include "target/iscsi/shard_sessions.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/iscsi/errc.h"

namespace vjbod::target {

ShardSessions::ShardSessions(size_t place, size_t place_count, SessionPlace where,
                             ServerLimits limits, ToHome to_home)
    : place_(place),
      place_count_(place_count),
      where_(where),
      limits_(limits),
      to_home_(std::move(to_home)),
      view_(std::make_shared<ServerView>()),
      next_id_(place + place_count),
      trim_timer_(*where_.reactor, [this] { trim_buffers(); }) {}

ShardSessions::~ShardSessions() {
  VJBOD_CHECK(sessions_.empty());
}

BufferPool& ShardSessions::buffers() {
  buffers_used_ = true;
  lent_peak_bytes_ = std::max(lent_peak_bytes_, where_.buffers->lent_bytes());
  if (!trim_timer_.armed() && !shutting_down_) trim_timer_.arm_after(trim_interval);
  return *where_.buffers;
}

void ShardSessions::trim_buffers() {
  const bool used = std::exchange(buffers_used_, false);
  // The peak is taken before each loan: the last one is not in it.
  where_.buffers->trim(used ? lent_peak_bytes_ + BufferPool::slab_bytes_max : 0);
  lent_peak_bytes_ = where_.buffers->lent_bytes();
  if (used || lent_peak_bytes_ > 0) trim_timer_.arm_after(trim_interval);
}

void ShardSessions::adopt(std::string remote_address, std::unique_ptr<transport::DataMover> mover) {
  if (shutting_down_ || view_->access == nullptr) {
    to_home_([place = place_, address = std::move(remote_address)](ShardEvents& home) {
      home.on_not_adopted(place, address);
    });
    return;
  }
  const SessionId id = next_id_;
  next_id_ += place_count_;
  to_home_([id, remote_address](ShardEvents& home) { home.on_adopted(id, remote_address); });
  remote_address_[id] = std::move(remote_address);
  auto session = std::make_unique<Session>(id, *this, std::move(mover));
  Session& started = *session;
  sessions_[id] = std::move(session);
  started.start();
}

void ShardSessions::set_view(std::shared_ptr<const ServerView> view) {
  const auto old = std::exchange(view_, std::move(view));
  for (auto& [id, session] : sessions_) {
    if (!session->in_full_feature_phase()) continue;
    const std::string& name = session->login()->target_name;
    const auto before = old->targets.find(name);
    const auto now = view_->targets.find(name);
    if (before == old->targets.end() || now == view_->targets.end()) continue;
    const bool same =
        std::equal(before->second.begin(), before->second.end(), now->second.begin(),
                   now->second.end(), [](const scsi::LunMapping& a, const scsi::LunMapping& b) {
                     return a.number == b.number && a.unit == b.unit && a.read_only == b.read_only;
                   });
    if (!same) session->set_luns(now->second);
  }
}

void ShardSessions::admit(SessionId session, uint16_t tsih) {
  if (auto found = sessions_.find(session); found != sessions_.end()) found->second->admit(tsih);
}

void ShardSessions::refuse(SessionId session, iscsi::LoginStatus status) {
  if (auto found = sessions_.find(session); found != sessions_.end()) {
    found->second->refuse(status, iscsi::name_of(status));
  }
}

bool ShardSessions::end(SessionId session, const Error& reason) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end() || found->second->gone()) return false;
  found->second->terminate(reason);
  return true;
}

std::vector<SessionId> ShardSessions::end_matching(const std::string& initiator_name,
                                                   const std::string& target_name,
                                                   const Error& reason) {
  std::vector<SessionId> ended;
  for (auto& [id, session] : sessions_) {
    const LoginOutcome* login = session->login();
    if (login == nullptr || session->gone()) continue;
    if (!initiator_name.empty() && login->initiator_name != initiator_name) continue;
    if (!target_name.empty() && login->target_name != target_name) continue;
    session->terminate(reason);
    ended.push_back(id);
  }
  return ended;
}

std::vector<SessionId> ShardSessions::shut_down() {
  shutting_down_ = true;
  trim_timer_.cancel();  // this object may end on another thread
  std::vector<SessionId> ended;
  for (auto& [id, session] : sessions_) {
    if (session->gone()) continue;
    session->ask_to_log_out({iscsi::Errc::closed_locally, "the target is shutting down"});
    ended.push_back(id);
  }
  return ended;
}

std::vector<SessionInfo> ShardSessions::list() const {
  std::vector<SessionInfo> all;
  for (const auto& [id, session] : sessions_) {
    if (session->in_full_feature_phase()) all.push_back(session->info());
  }
  return all;
}

void ShardSessions::on_admission_wanted(Session& session) {
  to_home_([id = session.id(), outcome = *session.login()](ShardEvents& home) {
    home.on_admission_wanted(id, outcome);
  });
}

void ShardSessions::on_session_opened(Session& session) {
  to_home_([info = session.info()](ShardEvents& home) { home.on_opened(info); });
}

void ShardSessions::on_session_ending(Session& session) {
  to_home_([id = session.id()](ShardEvents& home) { home.on_ending(id); });
}

void ShardSessions::on_login_failed(Session& session, const Error& reason) {
  to_home_([address = remote_address_[session.id()], reason](ShardEvents& home) {
    home.on_login_failed(address, reason);
  });
}

void ShardSessions::on_cold_reset(const std::string& target_name) {
  to_home_([target_name](ShardEvents& home) { home.on_cold_reset(target_name); });
}

void ShardSessions::on_session_gone(Session& session, const Error& reason) {
  to_home_([info = session.info(), reason](ShardEvents& home) { home.on_gone(info, reason); });
  remote_address_.erase(session.id());
  // Not from inside the session's own call.
  where_.reactor->post(
      [self = shared_from_this(), id = session.id()] { self->sessions_.erase(id); });
}

}  // namespace vjbod::target
