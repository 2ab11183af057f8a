// SPDX-License-Identifier: Apache-2.0
// The control side with a real TargetServer on a reactor without threads, a state directory and a
// pool in a temporary folder. restart() does what a new start of the daemon does.
#pragma once

#include <filesystem>
#include <optional>

#include <gtest/gtest.h>

#include "common/runtime/buffer_pool.h"
#include "common/runtime/manual_reactor.h"
#include "target/control/access_manager.h"
#include "target/control/access_policy.h"
#include "target/control/lun_manager.h"
#include "tests/support/temp_dir.h"

namespace vjbod::target {

class ManagerFixture : public testing::Test, public ServerEvents {
 protected:
  ManagerFixture() {
    std::filesystem::create_directory(dir_ / "pool");
    std::filesystem::create_directory(dir_ / "state");
    config_.name = "nas2";
    config_.pools = {{"tank", dir_ / "pool"}};
    config_.use_io_uring = false;
    start();
  }
  ~ManagerFixture() override { stop(); }

  void start() {
    reactor_.emplace();
    buffers_.emplace(size_t{4} << 20);
    server_.emplace(*reactor_, std::vector<SessionPlace>{{&*reactor_, &*buffers_}}, ServerLimits{},
                    *this);
    serving_.emplace(*reactor_, *reactor_, *server_);
    Result<StateStore> store = StateStore::open(dir_ / "state");
    ASSERT_TRUE(store) << store.error().text;
    store_.emplace(std::move(*store));
    pools_.emplace(config_.pools);
    auto renew = [this] {
      policy_ = std::make_shared<const AccessPolicy>(store_->state(), luns_->open_targets(),
                                                     config_.chap_algorithms);
      serving_->set_access(policy_);
    };
    luns_.emplace(config_, *store_, *pools_, *serving_, renew);
    access_.emplace(*store_, *serving_, renew);
    remarks_ = luns_->open_all();
    reactor_->run_until_idle();
  }
  void stop() {
    access_.reset();
    luns_.reset();
    pools_.reset();
    store_.reset();
    reactor_->run_until_idle();
    server_.reset();
    serving_.reset();
    reactor_->run_until_idle();
    policy_.reset();
    buffers_.reset();
    reactor_.reset();
  }
  void restart() {
    stop();
    start();
  }

  LunSpecification specification(std::string name) {
    LunSpecification result;
    result.name = std::move(name);
    result.pool = "tank";
    result.size_bytes = 1 << 20;
    return result;
  }
  const LunRecord& record(const std::string& name) { return store_->state().luns.at(name); }
  bool exists(const std::string& name) { return store_->state().luns.contains(name); }
  std::string file_of(const std::string& name) {
    return dir_ / ("pool/" + uuid_text(record(name).uuid) + ".lun");
  }
  size_t files() {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(dir_ / "pool"))
      count += entry.path().extension() == ".lun" ? 1 : 0;
    return count;
  }
  Status remove(const std::string& name) {
    return wait([&](auto done) { luns_->remove(name, done); });
  }
  // Runs the reactor until the operation has reported.
  template <typename Operation>
  Status wait(Operation operation) {
    std::optional<Status> result;
    operation([&](Status status) { result = std::move(status); });
    reactor_->run_until([&] { return result.has_value(); }, std::chrono::seconds(60));
    EXPECT_TRUE(result.has_value());
    return result.value_or(Status());
  }
  // The disk refuses to save the state until it is called with false.
  void break_saving(bool broken) {
    if (broken)
      std::filesystem::create_directory(dir_ / "state/target.json.new");
    else
      std::filesystem::remove(dir_ / "state/target.json.new");
  }

  void on_session_opened(const SessionInfo&) override {}
  void on_session_closed(const SessionInfo&, const Error&) override {}
  void on_login_failed(const std::string&, const Error&) override {}

  test::TempDir dir_;
  TargetConfig config_;
  std::optional<ManualReactor> reactor_;
  std::optional<BufferPool> buffers_;
  std::optional<TargetServer> server_;
  std::optional<Serving> serving_;
  std::optional<StateStore> store_;
  std::optional<Pools> pools_;
  std::optional<LunManager> luns_;
  std::optional<AccessManager> access_;
  std::shared_ptr<const AccessPolicy> policy_;
  std::vector<std::string> remarks_;
};

}  // namespace vjbod::target
