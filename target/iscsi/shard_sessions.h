// SPDX-License-Identifier: Apache-2.0
// The sessions of one shard. Lives and is used on that shard's thread; talks to the server's home
// by message only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "target/iscsi/session.h"

namespace vjbod::target {

// What happens on a shard, told to the home reactor in the order it happened.
class ShardEvents {
 public:
  virtual void on_adopted(SessionId session, const std::string& remote_address) = 0;
  virtual void on_not_adopted(size_t place, const std::string& remote_address) = 0;
  virtual void on_admission_wanted(SessionId session, const LoginOutcome& outcome) = 0;
  virtual void on_opened(const SessionInfo& session) = 0;
  // An open session begins to end; on_gone follows when its last task has left the backstore.
  virtual void on_ending(SessionId session) = 0;
  virtual void on_login_failed(const std::string& remote_address, const Error& reason) = 0;
  virtual void on_cold_reset(const std::string& target_name) = 0;
  virtual void on_gone(const SessionInfo& session, const Error& reason) = 0;

 protected:
  ~ShardEvents() = default;
};

// Runs a piece of work on the home reactor, against the ShardEvents there.
using ToHome = std::function<void(std::function<void(ShardEvents&)>)>;

class ShardSessions final : public SessionHost, public std::enable_shared_from_this<ShardSessions> {
 public:
  // How often the I/O memory is looked at while it is in use: what was not needed since the last
  // look goes back to the kernel, and all that is free at the first look without use.
  static constexpr Duration trim_interval = std::chrono::seconds(5);

  ShardSessions(size_t place, size_t place_count, SessionPlace where, ServerLimits limits,
                ToHome to_home);
  ~ShardSessions();

  void adopt(std::string remote_address, std::unique_ptr<transport::DataMover> mover);
  void set_view(std::shared_ptr<const ServerView> view);
  void admit(SessionId session, uint16_t tsih);
  void refuse(SessionId session, iscsi::LoginStatus status);
  // False when there is no such session.
  bool end(SessionId session, const Error& reason);
  // Those told to end; empty names match all. Only sessions past the login phase have names.
  std::vector<SessionId> end_matching(const std::string& initiator_name,
                                      const std::string& target_name, const Error& reason);
  std::vector<SessionId> shut_down();
  std::vector<SessionInfo> list() const;

 private:
  // SessionHost
  Reactor& reactor() override { return *where_.reactor; }
  BufferPool& buffers() override;
  const ServerLimits& limits() const override { return limits_; }
  std::shared_ptr<const ServerView> view() const override { return view_; }
  void on_admission_wanted(Session& session) override;
  void on_session_opened(Session& session) override;
  void on_session_ending(Session& session) override;
  void on_login_failed(Session& session, const Error& reason) override;
  void on_cold_reset(const std::string& target_name) override;
  void on_session_gone(Session& session, const Error& reason) override;

  const size_t place_, place_count_;
  const SessionPlace where_;
  const ServerLimits limits_;
  const ToHome to_home_;
  std::shared_ptr<const ServerView> view_;
  std::map<SessionId, std::unique_ptr<Session>> sessions_;
  std::map<SessionId, std::string> remote_address_;
  SessionId next_id_;  // one in place_count_ is ours, so ids name their shard
  bool shutting_down_ = false;

  void trim_buffers();
  size_t lent_peak_bytes_ = 0;  // since the last look
  bool buffers_used_ = false;   // likewise
  Timer trim_timer_;            // armed while there may be something to trim
};

}  // namespace vjbod::target
