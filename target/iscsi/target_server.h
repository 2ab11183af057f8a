// SPDX-License-Identifier: Apache-2.0
// The iSCSI side of the target daemon: connections in, sessions out. Knows targets, LUNs and who
// may use them; makes no sockets (the composition root listens, and hands movers in) and no policy
// (AccessTable). Lives on the home reactor; every call is made there unless it says otherwise.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/runtime/buffer_pool.h"
#include "common/runtime/clock.h"
#include "target/iscsi/server_view.h"
#include "target/iscsi/session_registry.h"

namespace vjbod::target {

// A place where sessions can live: a shard's reactor and its memory. Both outlive the server.
struct SessionPlace {
  Reactor* reactor = nullptr;
  BufferPool* buffers = nullptr;
};

struct SessionCounters {
  uint64_t read_bytes = 0, write_bytes = 0;
  uint64_t read_ops = 0, write_ops = 0;
};

struct SessionInfo {
  SessionId id = 0;
  std::string initiator_name, initiator_alias;
  std::string target_name;  // empty: discovery
  bool discovery = false;
  transport::Kind transport = transport::Kind::iscsi;
  std::string remote_address, local_address;
  iscsi::Isid isid{};
  uint16_t tsih = 0;
  TimePoint since{};
  bool header_digest = false, data_digest = false;
  std::string authenticated_user;  // empty: none was asked for
  bool mutual_authentication = false;
  uint32_t tasks_active = 0;
  SessionCounters counters;
};

// Life events, for the log, the event list and the control channel. On the home reactor.
class ServerEvents {
 public:
  virtual void on_session_opened(const SessionInfo& session) = 0;
  virtual void on_session_closed(const SessionInfo& session, const Error& reason) = 0;
  // A login that did not become a session; limited by address (ReportLimit).
  virtual void on_login_failed(const std::string& remote_address, const Error& reason) = 0;

 protected:
  ~ServerEvents() = default;
};

class TargetServer {
 public:
  // `places`: at least one. `events` outlives the server.
  TargetServer(Reactor& home, std::vector<SessionPlace> places, ServerLimits limits,
               ServerEvents& events);
  // Only after shutdown() has reported, or when no connection was ever adopted.
  ~TargetServer();

  // --- connections ---
  // Asks for a place for a new connection from this address ("10.0.0.1", without port). Nothing: a
  // limit is reached, close it. Otherwise adopt() or abandon() must follow.
  std::optional<size_t> reserve_place(const std::string& remote_address);
  void abandon(size_t place, const std::string& remote_address);
  // Called on the place's own reactor thread, with a mover of that reactor that is not started yet.
  void adopt(size_t place, std::string remote_address, std::unique_ptr<transport::DataMover> mover);

  // --- targets and access ---
  // Adds a target or changes its LUNs; sessions see a changed list with a unit attention.
  void set_target(TargetDefinition target);
  // The target cannot be logged in to any more; its sessions are ended, and then `done` is called:
  // no I/O for it is under way.
  void remove_target(const std::string& name, std::function<void()> done);
  // Sessions that the new table would not let in are ended. end_sessions() waits for them.
  void set_access(std::shared_ptr<const AccessTable> access);
  void set_advertised_portals(std::vector<std::string> portals);

  // --- sessions ---
  void list_sessions(std::function<void(std::vector<SessionInfo>)> done);
  // Ends every session that matches; an empty string matches all. `done` gets their number, once
  // they are gone entirely.
  void end_sessions(std::string initiator_name, std::string target_name, Error reason,
                    std::function<void(size_t)> done);
  // `done` gets false when there is no such session.
  void end_session(SessionId session, Error reason, std::function<void(bool)> done);

  // No new connection from here on. Asks initiators to log out, lets commands under way finish,
  // closes what is left after the grace, and reports when nothing is left.
  void shutdown(std::function<void()> done);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace vjbod::target
