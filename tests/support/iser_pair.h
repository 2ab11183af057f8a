// SPDX-License-Identifier: Apache-2.0
// Two iSER movers over a fabric in memory, connected as an initiator and a target do it, but
// without a connector or a listener.
#pragma once

#include <memory>

#include "common/runtime/manual_reactor.h"
#include "common/transport/iser/iser_data_mover.h"
#include "tests/support/fake_verbs.h"

namespace vjbod::transport {

struct IserPairOptions {
  bool memory_windows = true;
  uint32_t message_bytes_max = 8u << 20;  // of the devices
  IserDataMover::Options initiator{}, target{};
  bool foreign_initiator = false;  // its private data has no mark of ours
};

class IserPair final : private rdma::ConnectionEvents, private rdma::AcceptorEvents {
 public:
  explicit IserPair(const IserPairOptions& options = {});

  ManualReactor reactor;
  rdma::FakeNetwork network{reactor};
  rdma::FakeDevice& initiator_device;
  rdma::FakeDevice& target_device;
  std::unique_ptr<rdma::Fabric> initiator_fabric, target_fabric;
  IserPlace initiator_place, target_place;
  std::unique_ptr<IserDataMover> initiator, target;

 private:
  void on_cm(const rdma::CmReport& report) override;
  void on_completions() override {}
  void on_incoming(std::unique_ptr<rdma::Incoming> incoming) override;
  void on_acceptor_lost(const Error&) override {}

  const IserPairOptions options_;
  std::unique_ptr<rdma::Acceptor> acceptor_;
};

}  // namespace vjbod::transport
