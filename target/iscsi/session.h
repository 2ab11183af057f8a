// SPDX-License-Identifier: Apache-2.0
// One iSCSI connection at the target, from its first byte to the proof that nothing of it is left:
// login, full feature phase, and the end. One connection is one session (MaxConnections=1,
// ErrorRecoveryLevel=0), so this is RFC 7143's connection, session and I_T nexus at once. Owned by
// its SessionHost, on its shard; every call and upcall is on that shard's thread.
//
//   login -> admission (the host asks the registry, which may first drain another session) -> full
//   feature
//         -> closing (the mover was told) -> draining (the mover has closed; backstore work still
//         runs) -> gone
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/log.h"
#include "common/iscsi/command_window.h"
#include "common/iscsi/text.h"
#include "common/runtime/reactor.h"
#include "common/transport/data_mover.h"
#include "target/iscsi/command_task.h"
#include "target/iscsi/login_machine.h"
#include "target/iscsi/report_limit.h"
#include "target/iscsi/server_view.h"
#include "target/iscsi/target_server.h"
#include "target/scsi/nexus.h"

namespace vjbod::target {

class Session;

// What a session needs of the shard it lives on.
class SessionHost {
 public:
  virtual Reactor& reactor() = 0;
  virtual BufferPool& buffers() = 0;
  virtual const ServerLimits& limits() const = 0;
  virtual std::shared_ptr<const ServerView> view() const = 0;
  // The login is complete but for its final response. Answered by admit() or refuse().
  virtual void on_admission_wanted(Session& session) = 0;
  virtual void on_session_opened(Session& session) = 0;
  // An open session begins to end. Once.
  virtual void on_session_ending(Session& session) = 0;
  // The connection ended before it became a session.
  virtual void on_login_failed(Session& session, const Error& reason) = 0;
  // TARGET COLD RESET: every session of the target must end (RFC 7143 section 11.5.1).
  virtual void on_cold_reset(const std::string& target_name) = 0;
  // Nothing is left. The host may destroy the session, but not from inside this call.
  virtual void on_session_gone(Session& session, const Error& reason) = 0;

 protected:
  ~SessionHost() = default;
};

class Session final : private transport::DataMoverEvents,
                      private scsi::TaskPort,
                      private scsi::NexusOwner,
                      private scsi::ManagementOwner,
                      private Deferred {
 public:
  // Immediate commands unfinished at a time, which stand outside the command window; one more is
  // rejected.
  static constexpr uint32_t immediate_commands_max = 32;
  // Task management requests under way at once; one more is answered "function rejected".
  static constexpr size_t management_max = 8;
  // Rejects in such a window of time; a peer that sends more rubbish is ended.
  static constexpr uint32_t rejects_max = 64;
  static constexpr Duration rejects_window = std::chrono::seconds(60);
  // When nothing was heard in time, what waits in the socket is still read for so long.
  static constexpr Duration keepalive_last_look = std::chrono::milliseconds(200);
  // A deadline noticed so much later means that it was we who stood still: the peer gets all of its
  // time once more.
  static constexpr Duration keepalive_late_max = std::chrono::seconds(1);

  Session(SessionId id, SessionHost& host, std::unique_ptr<transport::DataMover> mover);
  ~Session();

  void start();
  void admit(uint16_t tsih);
  void refuse(iscsi::LoginStatus status, std::string_view reason);
  // Ends the session from our side; on_session_gone follows.
  void terminate(const Error& reason);
  // Asks the initiator to log out (Async Message, event 1) within the host's logout grace, then
  // terminates.
  void ask_to_log_out(const Error& reason);
  // The LUNs of its target have changed.
  void set_luns(const std::vector<scsi::LunMapping>& luns);

  SessionId id() const { return id_; }
  const LoginOutcome* login() const { return login_ ? &login_->outcome() : nullptr; }
  bool in_full_feature_phase() const { return state_ == State::full_feature; }
  // on_session_gone() has been called: nobody will hear of it again.
  bool gone() const { return gone_told_; }
  SessionInfo info() const;

 private:
  enum class State : uint8_t { login, admission, full_feature, closing, draining, gone };

  // transport::DataMoverEvents
  void on_control(const transport::ReceivedControl& received) override;
  void on_transfer_done(transport::TaskHandle handle) override;
  void on_unknown_opcode(ConstBytes header) override;
  void on_peer_alive() override;
  void on_closed(const Error& reason) override;
  // scsi::TaskPort
  void put_data(scsi::Task& task, uint64_t offset, size_t length) override;
  void get_data(scsi::Task& task, uint64_t offset, size_t length) override;
  void cancel_data(scsi::Task& task) override;
  void put_data_and_complete(scsi::Task& task, uint64_t offset, size_t length,
                             const scsi::Outcome& outcome) override;
  void complete(scsi::Task& task, const scsi::Outcome& outcome) override;
  // scsi::NexusOwner, scsi::ManagementOwner
  void on_nexus_drained() override;
  void on_managed(scsi::Management& request, scsi::ManagementResult result) override;
  // Deferred: data moves that needed no waiting, and the end.
  void run_deferred() override;

  // Login (session_login.cc).
  void on_login_request(const iscsi::LoginRequest& request, ConstBytes data);
  void take(LoginStep step);
  bool enter_full_feature_phase();

  // Full feature phase (session_commands.cc, session_control.cc).
  bool refuse_invalid(const transport::ReceivedControl& received);
  // False: drop it (an answer, where one is due, has been sent). Else finish_command() must follow
  // once.
  bool accept_command(SerialNumber cmd_sn, bool immediate, ConstBytes header);
  void finish_command(bool immediate);
  void on_scsi_command(const iscsi::ScsiCommand& command,
                       const transport::ReceivedControl& received);
  void refuse_command(const iscsi::ScsiCommand& command, transport::TaskHandle handle,
                      scsi::Status status);
  void on_nop_out(const iscsi::NopOut& nop, ConstBytes data);
  void on_text_request(const iscsi::TextRequest& request, ConstBytes data, ConstBytes header);
  void on_logout_request(const iscsi::LogoutRequest& request);
  void on_task_management(const iscsi::TaskManagementRequest& request);
  void answer_task_management(uint32_t itt, iscsi::TaskManagementResult result);
  void finish_logout();
  void reject(iscsi::RejectReason reason, ConstBytes header);
  void report_rejected(std::string_view what);
  void protocol_error(std::string_view what);

  CommandTask* take_task();
  CommandTask* find_task(transport::TaskHandle handle);
  CommandTask* find_running_task(uint32_t itt);
  void send_response(CommandTask& task, const scsi::Outcome& outcome);
  void release(CommandTask& task);
  void data_moved_later(CommandTask& task);
  void update_window();
  // Stamps and sends; `takes_stat_sn`: the PDU carries a status and uses up a StatSN.
  void send(iscsi::Pdu pdu, ConstBytes data, bool takes_stat_sn = true);
  void on_keepalive_timer();
  void begin_to_end(State next);
  void finish_draining();

  const SessionId id_;
  SessionHost& host_;
  Reactor& reactor_;
  std::unique_ptr<transport::DataMover> mover_;
  State state_ = State::login;
  PrefixLogger log_;
  bool gone_told_ = false;
  Error end_reason_;
  TimePoint since_;

  // The login machine's policy. Not the whole view: that would hold every LUN of the server.
  std::shared_ptr<const AccessTable> login_policy_;
  std::unique_ptr<LoginMachine> login_;
  uint16_t tsih_ = 0;
  Timer deadline_;  // login, then logout

  std::optional<iscsi::CommandWindow> window_;  // in full feature phase
  transport::SequenceNumbers numbers_;
  std::unique_ptr<scsi::Nexus> nexus_;
  bool nexus_draining_ = false;

  std::vector<CommandTask> tasks_;
  std::vector<transport::TaskHandle> handles_;  // of tasks_, by slot, for a quick search
  std::vector<uint16_t> free_slots_;
  uint32_t running_tasks_ = 0;
  IntrusiveList<CommandTask, MovedTag> moved_;  // owed an on_data_moved

  struct ManagementSlot : scsi::Management {
    bool used = false;
    bool cold = false;
    bool immediate = false;
    uint32_t itt = 0;
  };
  std::array<ManagementSlot, management_max> managements_;

  iscsi::TextAssembler text_request_;
  iscsi::TextSegmenter text_response_;
  uint32_t text_ttt_ = iscsi::reserved_tag;
  uint32_t next_ttt_ = 0;
  std::optional<uint32_t> logout_itt_;

  Timer keepalive_;
  TimePoint last_heard_{};
  bool keepalive_asked_ = false;
  bool keepalive_looking_ = false;

  ReportLimit reject_reports_;
  TimePoint rejects_since_{};
  uint32_t rejects_ = 0;
  SessionCounters counters_;
};

}  // namespace vjbod::target
