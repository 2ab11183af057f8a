// SPDX-License-Identifier: Apache-2.0
// One attached disk on its shard: the Disk and the frontend that exports it, with their life cycle.
// Made and told what to do from the main reactor, by message; answers there, by message.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "initiator/control/host_shard.h"
#include "initiator/disk/disk.h"
#include "initiator/frontend/nbd_server.h"

namespace vjbod::initiator {

// On the main reactor.
class DiskCellEvents {
 public:
  virtual void on_disk_changed(const std::string& name, const DiskStatus& status) = 0;
  virtual void on_disk_learned(const std::string& name, const DiskIdentity& identity,
                               const BlockGeometry& geometry) = 0;

 protected:
  ~DiskCellEvents() = default;
};

class DiskCell final : public std::enable_shared_from_this<DiskCell>,
                       private DiskObserver,
                       private FrontendOwner {
 public:
  // `events` is called on `main` and outlives the cell's end. `others`: shards for further NBD
  // connections.
  static std::shared_ptr<DiskCell> make(Reactor& main, HostShard& home, std::vector<Shard*> others,
                                        DiskConfig config, std::string socket_path,
                                        DiskCellEvents& events);
  ~DiskCell();

  const std::string& name() const { return name_; }
  const std::string& socket_path() const { return socket_path_; }

  // Each from the main reactor; callbacks come back there.
  void start(bool connect, std::function<void(vjbod::Status)> exported);
  void with_disk(std::function<void(Disk&)> work);  // runs on the shard; nothing once closing
  void status(std::function<void(const DiskStatus&, size_t clients)> done);
  // Ends the export and the disk, within 5 s whatever the target does. `restarts`: the daemon ends,
  // and clients are to ask the next one for what is not answered yet; else it fails.
  void close(bool restarts, std::function<void()> done);

 private:
  DiskCell(Reactor& main, HostShard& home, std::string name, std::string socket_path,
           DiskCellEvents& events);
  void on_disk_changed() override;
  void on_identity_learned(const DiskIdentity& identity, const BlockGeometry& geometry) override;
  void on_frontend_closed() override;
  void finish_if_closed();

  Reactor& main_;
  HostShard& home_;
  const std::string name_, socket_path_;
  DiskCellEvents& events_;
  // On the shard's thread only.
  std::unique_ptr<Disk> disk_;
  std::unique_ptr<NbdServer> server_;
  bool exported_ = false, closing_ = false, disk_closed_ = false;
  std::vector<std::function<void()>> closed_;
};

}  // namespace vjbod::initiator
