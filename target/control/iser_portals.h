// SPDX-License-Identifier: Apache-2.0
// The iSER side of the listening portals: the same addresses and ports as TCP, wherever an RDMA
// device has the address. A device that is not there (yet, or any more) is no error; it is looked
// for again. Requests are brought to the shard that their connection will live on. On the home
// reactor, but for the parts of each shard, which live there.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/runtime/asio_reactor.h"
#include "common/runtime/timer_queue.h"
#include "common/transport/iser/iser_listener.h"
#include "common/transport/iser/open_devices.h"
#include "target/control/config.h"
#include "target/iscsi/target_server.h"

namespace vjbod::target {

class IserPortals final : public transport::IserListenerEvents {
 public:
  // Devices come and go; so often those that are missing are looked for.
  static constexpr Duration listen_retry = std::chrono::seconds(3);
  // Bad requests are logged so often, however many there are.
  static constexpr Duration refusal_told_interval = std::chrono::minutes(1);

  // `shards`: the server's places, in its order, the first of which is home. `disposal`: for what
  // may wait in the kernel. All outlive this object.
  IserPortals(std::vector<AsioReactor*> shards, Reactor& disposal, TargetServer& server,
              std::vector<PortalConfig> portals);
  ~IserPortals();

  // Listens on what can be listened on now, and looks for the rest by itself from here on.
  void open();
  // Listens nowhere any more; connections that stand are not touched.
  void close();
  // What a shard has, to be taken down on that shard once no connection is left.
  std::vector<std::function<void()>> take_down();

  void on_requested(transport::IserRequest request) override;
  void on_bad_request(const std::string& peer_address, const Error& reason) override;
  void on_listener_lost(transport::Listener& listener, const Error& reason) override;

 private:
  // Lives on its shard.
  struct Place {
    Place(Reactor& reactor, Reactor& disposal,
          std::shared_ptr<transport::rdma::OpenDevices> devices);
    std::unique_ptr<transport::rdma::Fabric> fabric;
    transport::IserPlace place;
    transport::IserReception reception;
  };
  struct Portal {
    PortalConfig at;
    std::unique_ptr<transport::IserListener> listener;
    bool told_missing = false;
  };

  void look();
  void listen(Portal& portal);

  const std::vector<AsioReactor*> shards_;
  TargetServer& server_;
  std::vector<std::shared_ptr<Place>> places_;
  std::vector<Portal> portals_;
  bool open_ = false;
  uint64_t refused_ = 0;
  std::optional<TimePoint> refusal_told_;
  std::vector<std::unique_ptr<transport::IserListener>> lost_;  // destroyed in the next look()
  Timer retry_timer_;
};

}  // namespace vjbod::target
