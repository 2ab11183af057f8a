// SPDX-License-Identifier: Apache-2.0
// A connected pair of iSER movers over this machine's RDMA device, made by the connector and the
// listener of the daemons. The address is in the environment, VJBOD_RDMA_ADDRESS.
#pragma once

#include <functional>
#include <memory>

#include <gtest/gtest.h>

#include "common/runtime/asio_reactor.h"
#include "common/transport/iser/iser_connector.h"
#include "common/transport/iser/iser_listener.h"

namespace vjbod::transport {

class RdmaPair final : private IserListenerEvents {
 public:
  RdmaPair();
  ~RdmaPair();

  bool run_until(const std::function<bool()>& done, Duration limit = std::chrono::seconds(30)) {
    return reactor_.run_until(done, limit);
  }

  std::unique_ptr<DataMover> initiator, target;
  rdma::Connection* initiator_connection = nullptr;

 private:
  void on_requested(IserRequest request) override;
  void on_bad_request(const std::string& peer_address, const Error& reason) override;
  void on_listener_lost(Listener& listener, const Error& reason) override;

  AsioReactor reactor_{1};
  std::unique_ptr<rdma::Fabric> initiator_fabric_, target_fabric_;
  std::unique_ptr<IserPlace> initiator_place_, target_place_;
  std::unique_ptr<IserReception> reception_;
  std::unique_ptr<IserListener> listener_;
};

class RdmaWorld {
 public:
  static constexpr bool tells_what_was_fetched = false;
  static void adjust(iscsi::NegotiatedParameters&) {}

  std::unique_ptr<DataMover>& initiator() { return pair_.initiator; }
  std::unique_ptr<DataMover>& target() { return pair_.target; }
  bool run_until(const std::function<bool()>& done) { return pair_.run_until(done); }
  void settle();
  void cut() { pair_.initiator_connection->disconnect(); }
  // A device answers by itself, whatever its program does: the tests of a peer that is silent show
  // here that nothing is wrong with one that is not.
  void stall_initiator() {}

 private:
  RdmaPair pair_;
};

using ContractWorlds = ::testing::Types<RdmaWorld>;

}  // namespace vjbod::transport
