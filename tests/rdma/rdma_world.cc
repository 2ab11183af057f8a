// SPDX-License-Identifier: Apache-2.0
#include "tests/rdma/rdma_world.h"

#include <cstdlib>
#include <utility>

#include <unistd.h>

#include "common/transport/iser/rdma_verbs.h"

namespace vjbod::transport {

namespace {

// Its own in each process: a death test makes a second world beside the first.
uint16_t port() {
  return static_cast<uint16_t>(20000 + getpid() % 10000);
}

IserDataMover::Options options() {
  IserDataMover::Options options;
  options.data_segment_bytes = 64 * 1024;
  return options;
}

}  // namespace

RdmaPair::RdmaPair() {
  const char* address = std::getenv("VJBOD_RDMA_ADDRESS");
  VJBOD_CHECK(address != nullptr, "VJBOD_RDMA_ADDRESS is not set");
  const auto devices = std::make_shared<rdma::OpenDevices>();
  initiator_fabric_ = rdma::make_verbs_fabric(reactor_, reactor_, devices);
  target_fabric_ = rdma::make_verbs_fabric(reactor_, reactor_, devices);
  initiator_place_ = std::make_unique<IserPlace>(reactor_, *initiator_fabric_);
  target_place_ = std::make_unique<IserPlace>(reactor_, *target_fabric_);
  reception_ = std::make_unique<IserReception>(*target_place_, options());
  auto listener = IserListener::open(*target_place_, address, port(), *this);
  VJBOD_CHECK(listener.has_value(), "{}", listener ? "" : listener.error().text);
  listener_ = std::move(*listener);

  IserConnector connector(*initiator_place_, options());
  Endpoint to;
  to.address = to.source_address = address;
  to.port = port();
  bool answered = false;
  const auto attempt = connector.connect(
      to, std::chrono::seconds(10), [&](Result<std::unique_ptr<DataMover>> result) {
        answered = true;
        VJBOD_CHECK(result.has_value(), "{}", result ? "" : result.error().text);
        initiator_connection = &static_cast<IserDataMover&>(**result).connection();
        initiator = std::move(*result);
      });
  VJBOD_CHECK(run_until([&] { return answered && target != nullptr; }), "no connection");
}

RdmaPair::~RdmaPair() {
  initiator.reset();
  target.reset();
  listener_.reset();
  // What was disposed of is destroyed by the reactor's loop.
  int turns = 0;
  run_until([&] {
    reactor_.post([] {});
    return ++turns > 3;
  });
}

void RdmaPair::on_requested(IserRequest request) {
  reception_->receive(std::move(request), [this](Result<std::unique_ptr<DataMover>> result) {
    VJBOD_CHECK(result.has_value(), "{}", result ? "" : result.error().text);
    target = std::move(*result);
  });
}

void RdmaPair::on_bad_request(const std::string& peer_address, const Error& reason) {
  VJBOD_CHECK(false, "{}: {}", peer_address, reason.text);
}

void RdmaPair::on_listener_lost(Listener&, const Error& reason) {
  VJBOD_CHECK(false, "{}", reason.text);
}

void RdmaWorld::settle() {
  pair_.run_until([] { return false; }, std::chrono::milliseconds(500));
}

}  // namespace vjbod::transport
