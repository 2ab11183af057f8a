// SPDX-License-Identifier: Apache-2.0
// A disk, a fake target and a network between them, on manual time.
#pragma once

#include <list>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/runtime/manual_reactor.h"
#include "initiator/disk/disk.h"
#include "initiator/disk/geometry.h"
#include "tests/unit/initiator/fake_target.h"

namespace vjbod::initiator {

using namespace std::chrono_literals;

// A request that remembers its answer. More than one answer fails the test.
struct TestRequest final : BlockRequest, BlockRequestOwner {
  void on_request_done(BlockRequest&, int errno_value) override {
    EXPECT_FALSE(result.has_value()) << "answered twice";
    result = errno_value;
    if (answered != nullptr) ++*answered;
  }
  std::vector<std::byte> memory;
  std::optional<int> result;
  size_t* answered = nullptr;
};

class DiskFixture : public testing::Test, protected DiskObserver, protected BlockDeviceObserver {
 protected:
  DiskFixture() {
    connectors.set(transport::Kind::memory, *connector);
    config.name = "disk1";
    config.session.initiator_name = "iqn.2026-11.io.vjbod:host";
    config.session.target_name = "iqn.2026-11.io.vjbod:target";
    config.session.isid = {std::byte{0x80}, std::byte{1}, std::byte{2},
                           std::byte{3},    std::byte{4}, std::byte{5}};
    config.paths = {{transport::Kind::memory, {"10.0.0.2", 3260, {}, {}}}};
    config.commands_max = 8;
  }
  ~DiskFixture() override {
    if (disk && !detached) detach();
    EXPECT_EQ(answered, requests.size()) << "every request is answered exactly once";
    disk.reset();
    target.stop();
    reactor.run_until_idle();
  }

  void make_disk() {
    disk = std::make_unique<Disk>(reactor, connectors, std::move(config),
                                  static_cast<DiskObserver&>(*this));
    config.unflushed = UnflushedRecord();  // the disk has the other one: for a next disk
    disk->add_observer(*this);
  }
  void connect() {
    if (!disk) make_disk();
    disk->connect();
    run_to(DiskState::connected);
  }
  void run_to(DiskState state, Duration limit = 120s) {
    const bool reached = reactor.run_until([&] { return disk->status().state == state; }, limit);
    EXPECT_TRUE(reached) << "still " << name_of(disk->status().state) << ", wanted "
                         << name_of(state);
  }
  void detach() {
    disk->detach([this] { detached = true; });
    reactor.run_until([this] { return detached; }, 5s);
    EXPECT_TRUE(detached) << "detach takes longer than 5 s";
  }
  TestRequest& submit(BlockOperation operation, uint64_t offset, uint64_t length,
                      std::byte fill = {}) {
    TestRequest& request = requests.emplace_back();
    request.operation = operation;
    request.offset_bytes = offset;
    request.length_bytes = length;
    request.owner = &request;
    request.answered = &answered;
    if (operation == BlockOperation::read || operation == BlockOperation::write) {
      request.memory.assign(length, fill);
      request.data = request.memory;
    }
    disk->submit(request);
    return request;
  }
  TestRequest& write(uint64_t offset, uint64_t length, std::byte fill) {
    return submit(BlockOperation::write, offset, length, fill);
  }
  TestRequest& read(uint64_t offset, uint64_t length) {
    return submit(BlockOperation::read, offset, length);
  }
  TestRequest& flush() { return submit(BlockOperation::flush, 0, 0); }
  bool medium_is(uint64_t offset, uint64_t length, std::byte fill) const {
    const auto begin = target.medium.begin() + static_cast<ptrdiff_t>(offset);
    return std::all_of(begin, begin + static_cast<ptrdiff_t>(length),
                       [fill](std::byte b) { return b == fill; });
  }
  void sever() {
    auto links = network.links();
    links.back()->sever();
  }
  // A restart of the target's process takes `away`.
  void restart_target(Duration away = 1s) {
    target.stop();
    reactor.advance(away);
    target.start();
  }

  // DiskObserver, BlockDeviceObserver
  void on_disk_changed() override {
    if (disk) states.push_back(disk->status().state);
  }
  void on_identity_learned(const DiskIdentity& learned, const BlockGeometry&) override {
    identity = learned;
  }
  void on_geometry(const BlockGeometry& g) override { geometries.push_back(g); }

  static constexpr std::byte A{0xaa}, B{0xbb};

  ManualReactor reactor;
  transport::MemoryNetwork network{reactor};
  test::FakeTarget target{reactor, network};
  std::unique_ptr<transport::Connector> connector = network.make_connector();
  Connectors connectors;
  DiskConfig config;
  std::list<TestRequest> requests;
  size_t answered = 0;
  std::vector<DiskState> states;
  std::optional<DiskIdentity> identity;
  std::vector<BlockGeometry> geometries;
  bool detached = false;
  std::unique_ptr<Disk> disk;
};

}  // namespace vjbod::initiator
