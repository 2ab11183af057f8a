// SPDX-License-Identifier: Apache-2.0
#include "tests/support/iser_pair.h"

#include <utility>

#include "common/base/check.h"

namespace vjbod::transport {

namespace {

rdma::DeviceFacts facts(const char* name, const IserPairOptions& options) {
  rdma::DeviceFacts facts;
  facts.name = name;
  facts.memory_windows = options.memory_windows;
  facts.message_bytes_max = options.message_bytes_max;
  return facts;
}

}  // namespace

IserPair::IserPair(const IserPairOptions& options)
    : initiator_device(network.add_device(facts("rxe_host", options), {"10.0.0.1"})),
      target_device(network.add_device(facts("rxe_nas", options), {"10.0.0.2"})),
      initiator_fabric(network.make_fabric({&initiator_device})),
      target_fabric(network.make_fabric({&target_device})),
      initiator_place(reactor, *initiator_fabric),
      target_place(reactor, *target_fabric),
      options_(options) {
  acceptor_ = *target_fabric->listen("10.0.0.2", 3260, 8, *this);
  auto connection = *initiator_fabric->make_connection();
  connection->set_events(this);
  VJBOD_CHECK(connection->resolve_address("", "10.0.0.2", 3260, std::chrono::seconds(1)));
  reactor.run_until_idle();
  initiator = *IserDataMover::make(initiator_place, std::move(connection), Role::initiator,
                                   options.initiator);
  CmPrivateData ours = initiator->private_data(std::nullopt);
  if (options_.foreign_initiator) ours.own.reset();
  VJBOD_CHECK(initiator->connection().connect(encode_cm_private_data(ours)));
  reactor.run_until_idle();
  VJBOD_CHECK(target != nullptr);
}

void IserPair::on_incoming(std::unique_ptr<rdma::Incoming> incoming) {
  const CmPrivateData peer = *decode_cm_private_data(incoming->private_data());
  auto connection = target_fabric->adopt(std::move(incoming));
  target = *IserDataMover::make(target_place, std::move(connection), Role::target, options_.target);
  VJBOD_CHECK(target->connection().accept(encode_cm_private_data(target->private_data(peer))));
  target->established(peer);
}

void IserPair::on_cm(const rdma::CmReport& report) {
  if (report.event == rdma::CmEvent::established)
    initiator->established(*decode_cm_private_data(report.private_data));
}

}  // namespace vjbod::transport
