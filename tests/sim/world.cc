// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/world.h"

#include "common/base/check.h"

namespace vjbod::sim {

namespace {

constexpr Duration teardown_limit = std::chrono::seconds(120);

class OpenAccess final : public target::AccessTable {
 public:
  target::LoginDecision decide(const target::LoginIdentity&) const override {
    target::LoginDecision decision;
    decision.access = target::LoginDecision::Access::allowed;
    return decision;
  }
  std::vector<std::string> targets_of(std::string_view) const override { return {target_name}; }
};

}  // namespace

World::World(uint64_t seed, uint64_t size_bytes, bool rdma)
    : reactor_(seed), random_(seed ^ 0x5eed) {
  backstore_ = std::make_shared<SimBackstore>(size_bytes, random_.fork());
  scsi::LogicalUnit::Options unit;
  unit.uuid.fill(std::byte{7});
  unit.backstore = backstore_;
  unit.home = &reactor_;
  server_ = std::make_unique<target::TargetServer>(
      reactor_, std::vector<target::SessionPlace>{{&reactor_, &buffers_}}, target::ServerLimits(),
      static_cast<target::ServerEvents&>(*this));
  server_->set_access(std::make_shared<OpenAccess>());
  server_->set_target({target_name, {{0, scsi::LogicalUnit::make(unit), false}}});
  reactor_.run_until_idle();
  rdma_.set_link_options(transport::rdma_like_link);
  const auto accept = [this](std::unique_ptr<transport::DataMover> mover) {
    const auto place = server_->reserve_place("10.0.0.1");
    if (place) server_->adopt(*place, "10.0.0.1", std::move(mover));
  };
  auto listener = network_.listen("10.0.0.2", 3260, accept);
  auto rdma_listener = rdma_.listen("10.0.0.2", 3260, accept);
  VJBOD_CHECK(listener.has_value() && rdma_listener.has_value());
  listener_ = std::move(*listener);
  rdma_listener_ = std::move(*rdma_listener);
  connector_ = network_.make_connector();
  connectors_.set(transport::Kind::memory, *connector_);
  rdma_connector_ = rdma_.make_connector();
  connectors_.set(transport::Kind::iser, *rdma_connector_);
  initiator::DiskConfig config;
  config.name = "sim";
  config.session.initiator_name = initiator_name;
  config.session.target_name = target_name;
  config.session.isid = {std::byte{0x80}, std::byte{1}};
  if (rdma) config.paths.push_back({transport::Kind::iser, {"10.0.0.2", 3260, "", ""}});
  config.paths.push_back({transport::Kind::memory, {"10.0.0.2", 3260, "", ""}});
  config.policy.io_timeout = Duration{0};  // wait for ever: not one error is allowed
  disk_ = std::make_unique<initiator::Disk>(reactor_, connectors_, std::move(config),
                                            static_cast<initiator::DiskObserver&>(*this));
  disk_->connect();
}

World::~World() {
  bool detached = false, down = false;
  disk_->detach([&] { detached = true; });
  reactor_.run_until([&] { return detached; }, teardown_limit);
  VJBOD_CHECK(detached, "detach did not end");
  disk_.reset();
  server_->shutdown([&] { down = true; });
  reactor_.run_until([&] { return down; }, teardown_limit);
  VJBOD_CHECK(down, "shutdown did not end");
  reactor_.run_until_idle();
  server_.reset();
  listener_.reset();
  rdma_listener_.reset();
  reactor_.run_until_idle();
}

std::shared_ptr<transport::MemoryLink> World::newest_link() {
  const bool by_rdma = disk_->status().connection == transport::Kind::iser;
  auto links = (by_rdma ? rdma_ : network_).links();
  return links.empty() ? nullptr : links.back();
}

}  // namespace vjbod::sim
