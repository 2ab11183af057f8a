// SPDX-License-Identifier: Apache-2.0
// Decides what a disk's connection does next: connect, log in, probe, stay, close, wait, give up.
// Pure: what happened goes in with the time, what to do comes out. The shell (supervisor.h) does
// it and reports back. One per disk.
//
//   stopped ─► connecting ─► logging_in ─► probing ◄─► online
//                 ▲  │            │           │          │
//                 │  ▼            ▼           ▼          ▼
//              backing_off ◄──────────── draining ◄──────┘      failed and stale wait for a person
//
// Rules: at most one connection attempt or session exists at any time (two sessions with one ISID
// would evict each other). Nothing new begins before the old session has closed, because only then
// is the memory of its commands free.
//
// RDMA comes first in every round, within a time of its own, and iSCSI after it. Once per loss of
// an RDMA session a round that has got through to iSCSI looks at RDMA again before it settles: the
// box may have come back in between.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/base/transition_log.h"
#include "common/runtime/backoff.h"
#include "initiator/session/rdma_memory.h"
#include "initiator/session/transport_plan.h"

namespace vjbod::initiator {

// Tries that end because secrets or options of the two ends do not fit; then a person has to look
// (retrying a wrong secret for hours locks accounts and hides the reason). For a disk that was
// online before: its target may be in the middle of being set up again. A new one gets one try.
inline constexpr uint32_t misfits_max = 3;
// A session that was online for less, and carried no command, does not count as a success: the
// wait before the next try goes on growing, so that a target that drops us at once is not stormed.
inline constexpr Duration online_stable = std::chrono::seconds(1);

// What all ways by RDMA of one round may take together before iSCSI is tried, to the connection;
// and what a login over one may take at the least. Together: the 5 s that a silent RDMA side costs.
inline constexpr Duration rdma_round_max = std::chrono::seconds(4);
inline constexpr Duration rdma_login_min = std::chrono::seconds(1);
inline constexpr Duration rdma_attempt_min = std::chrono::milliseconds(250);
// An RDMA session that got work done, or lived for so long (longer than a stuck command is waited
// for), has proved its way.
inline constexpr Duration rdma_proven = std::chrono::seconds(150);

enum class SupervisorState : uint8_t {
  stopped,
  connecting,
  logging_in,
  probing,  // asking who the LUN is, after a login or when the target says that it has changed
  online,
  draining,  // the session is being closed
  backing_off,
  failed,  // until start
  stale,   // until start
};
const char* name_of(SupervisorState state);

enum class SupervisorEvent : uint8_t {
  start,      // a person or the start of the daemon: connect, whatever there was
  stop,       // stay away
  reconnect,  // a new session now
  connected,
  connect_failed,
  logged_in,
  probe_wanted,  // the target says that the LUN has changed
  probe_passed,
  probe_failed,      // the LUN does not answer as it should: try again later
  no_such_disk,      // there is no LUN of that number, or it is no disk
  identity_changed,  // it is another LUN
  writes_lost,       // the target lost acknowledged writes
  session_closed,
  time_over,  // of the sleep
};
const char* name_of(SupervisorEvent event);

enum class CloseKind : uint8_t {
  lost,
  redirect,
  at_chap,  // with the algorithms offered; others may do
  misfit,   // secrets or options of the two ends do not fit
  refused,  // the target does not know the name that it is asked for, or not us
};

struct SupervisorInput {
  SupervisorEvent event;
  TimePoint now{};
  CloseKind close = CloseKind::lost;  // of session_closed
  std::string redirect_address{};     // of CloseKind::redirect
  bool was_useful = false;            // of session_closed: commands were answered while online
};

struct SupervisorAction {
  enum class Kind : uint8_t {
    connect,          // to `path`; answer: connected or connect_failed
    abandon_connect,  // no answer
    log_in,           // over the connection that was just made, with `md5_only`; answer: logged_in,
                      // session_closed
    probe,            // answer: probe_passed, probe_failed, identity_changed, writes_lost
    go_online,        // commands may be issued
    close_session,    // in order and bounded in time; answer: session_closed
    sleep,            // for `delay`; answer: time_over
    cancel_sleep,     // no answer
  };
  Kind kind;
  PathCandidate path{};
  Duration delay{};
  bool md5_only = false;            // of CHAP's algorithms
  std::optional<Duration> limit{};  // of connect and log_in: less than usual
};

class SupervisorMachine {
 public:
  // `known`: the disk was online before, in this process or an earlier one. What a new one is
  // refused with ends in `failed` at once, for the person who is making it.
  SupervisorMachine(std::vector<PathCandidate> paths, BackoffLimits limits, Random random,
                    bool known);

  // Events that do not fit the state (a stop in stopped, an answer to something abandoned) do
  // nothing.
  std::vector<SupervisorAction> handle(const SupervisorInput& input);
  // For the next round of tries.
  void set_paths(std::vector<PathCandidate> paths);
  // The target or its settings may be others: what it took of CHAP is forgotten.
  void forget_algorithms() { md5_only_ = others_tried_ = false; }
  // A person wants RDMA to be tried again.
  void forget_rdma_failures() { memory_.forget(); }

  SupervisorState state() const { return state_; }
  TimePoint since() const { return since_; }
  // Connection attempts since the last time online (or the start).
  uint32_t attempts() const { return attempts_; }
  uint32_t misfits() const { return misfits_; }
  // Until when no way by RDMA is tried, though there is one.
  std::optional<TimePoint> rdma_avoided_until(TimePoint now) const;
  // While probing: the session was online before.
  bool was_online() const { return was_online_; }
  // What stopped/failed/stale follows draining: for status, what the disk is on its way to.
  SupervisorState goal() const { return state_ == SupervisorState::draining ? goal_ : state_; }
  const TransitionLog& transitions() const { return transitions_; }

 private:
  using Actions = std::vector<SupervisorAction>;

  Actions in_stopped(const SupervisorInput& input);
  Actions in_connecting(const SupervisorInput& input);
  Actions in_logging_in(const SupervisorInput& input);
  Actions in_probing(const SupervisorInput& input);
  Actions in_online(const SupervisorInput& input);
  Actions in_draining(const SupervisorInput& input);
  Actions in_backing_off(const SupervisorInput& input);

  bool was_success(const SupervisorInput& closed) const;
  Actions connect(PathCandidate path, TimePoint now);
  Actions begin_anew(TimePoint now);
  Actions try_next_path(TimePoint now);
  bool should_look_at_rdma_again() const;
  void begin_round();
  void came_online(TimePoint now);
  void note_rdma_loss(const SupervisorInput& closed);
  Actions back_off();
  Actions session_lost(const SupervisorInput& input);
  Actions close_session(SupervisorState goal);
  void enter(SupervisorState state) { state_ = state; }

  TransportPlan plan_;
  Backoff backoff_;
  Random random_;
  SupervisorState state_ = SupervisorState::stopped;
  SupervisorState goal_ = SupervisorState::stopped;  // of draining
  TimePoint since_{};
  TimePoint online_since_{};
  bool was_online_ = false;
  uint32_t attempts_ = 0;
  uint32_t misfits_ = 0;
  bool known_;
  PathCandidate path_;         // of the last connect
  bool md5_only_ = false;      // the algorithms of the next login; keeps what worked
  bool others_tried_ = false;  // the other choice has just failed
  RdmaMemory memory_;
  std::vector<transport::Endpoint> rdma_failed_;  // in this round
  std::optional<TimePoint> rdma_until_;           // of this round
  bool rdma_lost_ = false;                        // the last session online was by RDMA
  bool looked_again_ = false;                     // since then
  bool ever_online_ = false;
  TransitionLog transitions_;
};

}  // namespace vjbod::initiator
