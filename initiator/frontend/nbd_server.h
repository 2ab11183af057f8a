// SPDX-License-Identifier: Apache-2.0
// Exports one disk as an NBD server on a Unix socket. Lives on the disk's shard, where it accepts;
// the first connection stays there, for the shortest way to the disk, and further ones go round the
// other shards, so that their socket work runs in parallel.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "common/runtime/shard.h"
#include "initiator/frontend/frontend.h"
#include "initiator/frontend/nbd_connection.h"
#include "initiator/frontend/unix_listener.h"

namespace vjbod::initiator {

struct NbdServerOptions {
  UnixListener::Options socket;
  nbd::ConnectionOptions connection;
  // More are closed at once. A multi-queue client uses one per CPU.
  size_t connections_max = 64;
};

class NbdServer final : public Frontend, private BlockDeviceObserver {
 public:
  // `home` is the shard of the device. `others` may be empty; all shards outlive the server.
  NbdServer(BlockDevice& device, Shard& home, std::vector<Shard*> others, NbdServerOptions options);
  ~NbdServer() override;  // never started, or after on_frontend_closed

  Status start(FrontendOwner& owner) override;
  void stop() override;
  void hang_up(std::function<void()> hung_up) override;
  std::string device() const override { return options_.socket.path; }
  std::string uri() const override;

  size_t connection_count() const { return clients_.size() + newcomers_.size(); }

 private:
  // Out of descriptors or memory: trying again at once would spin.
  static constexpr Duration accept_pause = std::chrono::milliseconds(100);

  class Client;
  struct AcceptWatch;
  struct AcceptReady;

  // Somebody who has connected, and the earlier clients that may have to be over before he is let
  // in: what a connection that is gone has left under way must not land on what the next one
  // writes.
  struct Newcomer {
    int fd = -1;
    std::set<const Client*> before;
  };

  void wait_for_clients();
  void accept_clients();
  void ask_who_is_gone(uint64_t number, Newcomer& newcomer);
  void no_longer_before(uint64_t number, const Client& client);
  void let_in(int fd, uint64_t number);
  Shard& choose_shard();
  void on_client_finished(Client& client);
  void on_client_gone(Client& client);
  void end_export();
  void close_if_over();
  void on_geometry(const BlockGeometry& geometry) override;

  BlockDevice& device_;
  Shard& home_;
  const std::vector<Shard*> others_;
  const NbdServerOptions options_;
  PrefixLogger log_;
  FrontendOwner* owner_ = nullptr;

  std::optional<UnixListener> listener_;
  const std::unique_ptr<AcceptWatch> accept_watch_;
  HandlerMemory accept_memory_;
  bool accept_waits_ = false;
  Timer accept_again_;
  bool stopping_ = false;
  bool closed_ = false;

  std::vector<std::unique_ptr<Client>> clients_;
  std::map<uint64_t, Newcomer> newcomers_;  // by number
  size_t next_other_ = 0;
  uint64_t clients_seen_ = 0;
};

}  // namespace vjbod::initiator
