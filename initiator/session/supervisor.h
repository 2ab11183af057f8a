// SPDX-License-Identifier: Apache-2.0
// Keeps one disk connected: does what the pure SupervisorMachine decides, with a Connector, a
// Session and a timer, and tells the disk when commands may be issued.
//
// Owned by a disk, on its reactor's thread. At most one connection attempt or one session exists at
// any time. May be destroyed only when at_rest().
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/log.h"
#include "common/runtime/reactor.h"
#include "initiator/session/connectors.h"
#include "initiator/session/session.h"
#include "initiator/session/supervisor_machine.h"

namespace vjbod::initiator {

class SupervisorClient {
 public:
  // A session is there (or the LUN may have changed on the one that is). Find out what the LUN is
  // over `channel`, and answer with one of Supervisor's probe_... calls; issue nothing else
  // meanwhile. The channel is valid until on_session_down of the same generation.
  virtual void on_probe(ScsiChannel& channel, uint64_t generation) = 0;
  // Commands may be issued whenever the channel can.
  virtual void on_online() = 0;
  virtual void on_window_open() = 0;
  // The session of this generation is closed and no lent memory is touched any more. Comes once for
  // each generation that on_probe told of.
  virtual void on_session_down(uint64_t generation, const Error& reason) = 0;
  // Anything that status shows has changed. From inside any call: take note, act later.
  virtual void on_supervisor_changed() = 0;

 protected:
  ~SupervisorClient() = default;
};

struct SupervisorConfig {
  std::string name;  // for logs
  SessionConfig session;
  std::vector<PathCandidate> paths;
  uint32_t commands_max = 128;
  BackoffLimits backoff;
  bool known = false;  // the disk was online before; see supervisor_machine.h
};

class Supervisor final : private SessionEvents, private Deferred {
 public:
  Supervisor(Reactor& reactor, const Connectors& connectors, SupervisorConfig config,
             SupervisorClient& client);
  ~Supervisor();

  void start() { input({SupervisorEvent::start}); }
  void stop() { input({SupervisorEvent::stop}); }
  void reconnect() { input({SupervisorEvent::reconnect}); }
  void probe_wanted() { input({SupervisorEvent::probe_wanted}); }
  void probe_passed() { input({SupervisorEvent::probe_passed}); }
  void probe_failed(const Error& why) { fail_with(SupervisorEvent::probe_failed, why); }
  void no_such_disk(const Error& why) { fail_with(SupervisorEvent::no_such_disk, why); }
  void identity_changed(const Error& why) { fail_with(SupervisorEvent::identity_changed, why); }
  void writes_lost(const Error& why) { fail_with(SupervisorEvent::writes_lost, why); }
  void set_paths(std::vector<PathCandidate> paths);
  void set_session(SessionConfig session);
  void forget_rdma_failures() { machine_.forget_rdma_failures(); }

  SupervisorState state() const { return machine_.state(); }
  const SupervisorMachine& machine() const { return machine_; }
  // Stopped, failed or stale: nothing is under way and no memory is lent.
  bool at_rest() const { return session_ == nullptr && attempt_ == nullptr && !sleep_.armed(); }
  const Session* session() const { return session_.get(); }  // null without one
  uint64_t generation() const { return generation_; }
  // Where it is connected or where it tried last; null before the first try.
  const PathCandidate* path() const { return path_ ? &*path_ : nullptr; }
  std::optional<TimePoint> next_attempt_at() const;
  struct LastError {
    Error error;
    TimePoint at{};
  };
  const std::optional<LastError>& last_error() const { return last_error_; }
  // Why RDMA did not work out when it was tried last, with a code of RdmaErrc; nothing once it did.
  const std::optional<LastError>& rdma_failure() const { return rdma_failure_; }

 private:
  // SessionEvents
  void on_logged_in() override;
  void on_window_open() override { client_.on_window_open(); }
  void on_session_closed(const Error& reason, bool permanent) override;
  // Deferred: frees closed sessions and finished attempts, outside of their upcalls.
  void run_deferred() override {
    retired_.clear();
    retired_attempts_.clear();
  }

  void input(SupervisorInput input);
  void fail_with(SupervisorEvent event, const Error& why);
  void perform(const SupervisorAction& action);
  void connect(const PathCandidate& path, std::optional<Duration> limit);
  void on_connect_done(Result<std::unique_ptr<transport::DataMover>> mover);
  void log_in(bool md5_only, std::optional<Duration> limit);
  void note_error(const Error& error);
  void note_rdma_failure(Error error, bool logged_in);

  Reactor& reactor_;
  const Connectors& connectors_;
  SupervisorConfig config_;
  SupervisorClient& client_;
  PrefixLogger log_;
  SupervisorMachine machine_;

  std::deque<SupervisorInput> inputs_;  // that came while one was being worked on
  bool working_ = false;
  std::unique_ptr<transport::ConnectAttempt> attempt_;
  std::unique_ptr<transport::DataMover> mover_;  // between connected and log_in
  std::unique_ptr<Session> session_;
  std::vector<std::unique_ptr<Session>> retired_;
  std::vector<std::unique_ptr<transport::ConnectAttempt>> retired_attempts_;
  uint64_t generation_ = 0;
  uint64_t answered_before_online_ = 0;  // commands: the probe's
  bool announced_ = false;               // the client knows of this generation
  Error close_reason_;                   // for the next close_session
  std::optional<PathCandidate> path_;
  std::optional<LastError> last_error_, rdma_failure_;
  std::string last_logged_;
  Timer sleep_;
};

}  // namespace vjbod::initiator
