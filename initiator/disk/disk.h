// SPDX-License-Identifier: Apache-2.0
// One attached LUN: a block device that survives the loss of its connection. It joins the request
// table, the SCSI translator and the session supervisor; frontends know it as a BlockDevice, the
// control layer by this header.
//
// Owned by the control layer. Lives and dies on one reactor: every call is on its thread, and so
// are all upcalls. It makes no connection before connect(). May be destroyed only after detach()
// has called back (or before connect() was ever called).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/runtime/reactor.h"
#include "initiator/disk/block_device.h"
#include "initiator/disk/disk_identity.h"
#include "initiator/disk/disk_status.h"
#include "initiator/disk/unflushed_record.h"
#include "initiator/session/connectors.h"
#include "initiator/session/session_config.h"
#include "initiator/session/transport_plan.h"

namespace vjbod::initiator {

struct DiskPolicy {
  OnLoss on_loss = OnLoss::queue;
  // Since the connection was lost (or connecting began): what waits then fails with EIO, and so
  // does everything new until the disk is connected again. Zero: wait for ever.
  Duration io_timeout = std::chrono::seconds(600);
};

struct DiskConfig {
  std::string name;  // for logs
  SessionConfig session;
  std::vector<PathCandidate> paths;  // in order of preference
  uint16_t lun = 0;
  DiskPolicy policy;
  // What was learned before, from the control layer's state. Without it the first LUN found is
  // taken, and told by on_identity_learned.
  std::optional<DiskIdentity> identity;
  // As last known, so that a restarted daemon can export the disk before the target answers.
  std::optional<BlockGeometry> geometry;
  // What an earlier run of the daemon has left unflushed, and where this one notes its own.
  UnflushedRecord unflushed;
  bool recovering = false;      // shown as `recovering` until connected
  uint32_t commands_max = 128;  // at the target at the same time
};

// On the disk's reactor thread, never from inside a call of the disk. Post to your own.
class DiskObserver {
 public:
  // Any change of status().state, its reason, attempt count or next attempt.
  virtual void on_disk_changed() = 0;
  // Learned at the first probe, or grown: store it before you answer anybody.
  virtual void on_identity_learned(const DiskIdentity& identity, const BlockGeometry& geometry) = 0;

 protected:
  ~DiskObserver() = default;
};

class Disk final : public BlockDevice {
 public:
  // `connectors` and `observer` outlive the disk.
  Disk(Reactor& reactor, const Connectors& connectors, DiskConfig config, DiskObserver& observer);
  ~Disk();
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  // --- control ---
  // Connects and keeps connected. The user's word after `failed`, `stale` or `disconnected`: tries
  // (and counts) begin anew, an error of a flush is forgotten. Nothing while already at it.
  void connect();
  // Takes the LUN that stands there now as the disk, whatever was there before, at the next
  // connect(). For `stale`, when a person has decided so.
  void forget_identity();
  // Logs out and stays away. I/O waits or fails by policy.
  void disconnect();
  // An orderly new session with the same ISID under load, with no I/O error. Tries the paths from
  // the best on. While not connected: tries again now.
  void reconnect();
  // Of this box. A session that is bound to another one is moved now: its silence would tell of the
  // loss only after the keepalive's time.
  void use_only_interfaces(const std::vector<std::string>& usable);
  // Another host has the LUN now (the control channel says so): like disconnect(), shown as such.
  void take_over(const Error& reason);
  // It must not be used for a reason that lies outside of it: failed until connect().
  void refuse(const Error& reason);
  // Everything that waits or is at the target ends with ESHUTDOWN, the session is closed, and then
  // `done` comes, once, within 5 s whatever the target does. No request may be submitted any more:
  // those that are get ESHUTDOWN. The disk may be destroyed from inside `done`.
  void detach(std::function<void()> done);
  void set_policy(const DiskPolicy& policy);
  // For the next attempt; call reconnect() to use them now.
  void set_paths(std::vector<PathCandidate> paths);
  void set_session(SessionConfig session);
  // RDMA that has failed repeatedly is tried again with the next connection.
  void forget_rdma_failures();

  DiskStatus status() const;

  // --- BlockDevice ---
  Reactor& reactor() override;
  bool geometry_known() const override;
  BlockGeometry geometry() const override;
  void submit(BlockRequest& request) override;
  void add_observer(BlockDeviceObserver& observer) override;
  void remove_observer(BlockDeviceObserver& observer) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vjbod::initiator
