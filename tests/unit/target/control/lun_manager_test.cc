// SPDX-License-Identifier: Apache-2.0
#include "target/control/lun_manager.h"

#include <fstream>

#include <gtest/gtest.h>

#include "common/rpc/errc.h"
#include "tests/unit/target/control/manager_fixture.h"

namespace vjbod::target {
namespace {

class LunManagerTest : public ManagerFixture {
 protected:
  // A LUN with one thing about it changed.
  template <typename Edit>
  Status create(const std::string& name, Edit edit) {
    LunSpecification request = specification(name);
    edit(request);
    return luns_->create(std::move(request));
  }
  Status request(const std::string& name, const std::string& request_id,
                 uint64_t size_bytes = 1 << 20) {
    return create(name, [&](LunSpecification& s) {
      s.request_id = request_id;
      s.size_bytes = size_bytes;
    });
  }
};

TEST_F(LunManagerTest, ALunHasItsFileItsTargetAndItsIdentity) {
  ASSERT_TRUE(luns_->create(specification("disk1")));

  EXPECT_EQ(record("disk1").target_iqn, "iqn.2026-11.io.vjbod:nas2.disk1");
  EXPECT_EQ(std::filesystem::file_size(file_of("disk1")), 1U << 20);
  LunStatus status = luns_->status(record("disk1"));
  EXPECT_EQ(status.error, "");
  EXPECT_EQ(status.naa >> 60, 3U);
  EXPECT_EQ(status.serial.size(), 16U);
  EXPECT_EQ(luns_->open_targets(), std::set<std::string>{record("disk1").target_iqn});
}

TEST_F(LunManagerTest, IdentityAndTargetSurviveARestart) {
  ASSERT_TRUE(luns_->create(specification("disk1")));
  const LunStatus before = luns_->status(record("disk1"));

  restart();

  EXPECT_TRUE(remarks_.empty());
  EXPECT_EQ(luns_->status(record("disk1")).naa, before.naa);
  EXPECT_EQ(luns_->status(record("disk1")).serial, before.serial);
}

TEST_F(LunManagerTest, ABoxThatGetsAnotherNameKeepsItsTargets) {
  ASSERT_TRUE(luns_->create(specification("disk1")));
  config_.name = "renamed";
  restart();
  EXPECT_EQ(record("disk1").target_iqn, "iqn.2026-11.io.vjbod:nas2.disk1");
}

TEST_F(LunManagerTest, TheSameRequestAgainMakesNoSecondLun) {
  ASSERT_TRUE(request("disk1", "id-1"));
  const scsi::UnitUuid uuid = record("disk1").uuid;

  EXPECT_TRUE(request("disk1", "id-1"));

  EXPECT_EQ(record("disk1").uuid, uuid);
  EXPECT_EQ(files(), 1U);
}

TEST_F(LunManagerTest, AnotherRequestForATakenNameIsRefused) {
  ASSERT_TRUE(request("disk1", "id-1"));
  EXPECT_EQ(request("disk1", "id-2").error().code, rpc::Errc::already_exists);
  EXPECT_EQ(request("disk1", "id-1", 2 << 20).error().code, rpc::Errc::already_exists);
  EXPECT_EQ(request("disk2", "id-1").error().code, rpc::Errc::already_exists);
  EXPECT_EQ(files(), 1U);
}

TEST_F(LunManagerTest, WrongSpecificationsLeaveNothing) {
  for (const char* name : {"", "../disk", "DISK", "a\n", "a b"})
    EXPECT_FALSE(luns_->create(specification(name))) << name;
  EXPECT_FALSE(create("disk1", [](auto& s) { s.size_bytes = 1000; }));
  EXPECT_FALSE(create("disk1", [](auto& s) { s.block_size = 1024; }));
  EXPECT_FALSE(create("disk1", [](auto& s) { s.request_id.assign(1000, 'x'); }));
  Status status = create("disk1", [](auto& s) { s.pool = "lake"; });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, rpc::Errc::not_found);
  EXPECT_NE(status.error().text.find("tank"), std::string::npos);
  EXPECT_EQ(files(), 0U);
  EXPECT_TRUE(store_->state().luns.empty());
}

TEST_F(LunManagerTest, NoMoreLunsThanTheLimit) {
  ASSERT_TRUE(store_->change([](TargetState& state) {
    for (size_t i = 0; i < TargetState::luns_max; ++i) {
      LunRecord lun;
      lun.name = fmt::format("x{}", i);
      lun.uuid[0] = static_cast<std::byte>(i);
      lun.target_iqn = fmt::format("iqn.2026-11.x:{}", i);
      lun.pool = "gone";
      lun.size_bytes = 512;
      state.luns.emplace(lun.name, std::move(lun));
    }
  }));
  EXPECT_EQ(luns_->create(specification("disk1")).error().code, rpc::Errc::no_space);
}

TEST_F(LunManagerTest, ACreationThatCannotBeSavedLeavesNone) {
  break_saving(true);
  EXPECT_FALSE(luns_->create(specification("disk1")));
  break_saving(false);
  EXPECT_EQ(files(), 0U);
  EXPECT_FALSE(exists("disk1"));
  EXPECT_TRUE(luns_->create(specification("disk1")));
}

TEST_F(LunManagerTest, AnInterruptedCreationIsClearedUpAtTheNextStart) {
  const std::string uuid = "2f1b0c3e-0102-4304-8506-0708090a0b0c";
  ASSERT_TRUE(store_->change([&](TargetState& state) { state.doomed.insert({"tank", uuid}); }));
  std::ofstream(dir_ / ("pool/" + uuid + ".lun")) << "half";

  restart();

  EXPECT_EQ(files(), 0U);
  EXPECT_TRUE(store_->state().doomed.empty());
  EXPECT_TRUE(remarks_.empty());
}

TEST_F(LunManagerTest, AFileThatTheStateDoesNotKnowIsNeverTouched) {
  const std::string file = "pool/2f1b0c3e-0102-4304-8506-0708090a0b0c.lun";
  std::ofstream(dir_ / file) << "somebody's only copy";
  restart();
  EXPECT_EQ(dir_.read(file), "somebody's only copy");
}

TEST_F(LunManagerTest, ADeletedLunIsGoneWithItsFile) {
  ASSERT_TRUE(luns_->create(specification("disk1")));
  ASSERT_TRUE(luns_->create(specification("disk2")));

  ASSERT_TRUE(remove("disk1"));

  EXPECT_FALSE(exists("disk1"));
  EXPECT_EQ(files(), 1U);
  EXPECT_TRUE(store_->state().doomed.empty());
  EXPECT_EQ(remove("disk1").error().code, rpc::Errc::not_found);
  restart();
  EXPECT_FALSE(exists("disk1"));
}

TEST_F(LunManagerTest, ADeletionThatCannotBeSavedDeletesNothing) {
  ASSERT_TRUE(luns_->create(specification("disk1")));
  break_saving(true);
  EXPECT_FALSE(remove("disk1"));
  break_saving(false);
  EXPECT_TRUE(exists("disk1"));
  EXPECT_TRUE(std::filesystem::exists(file_of("disk1")));
  EXPECT_EQ(luns_->status(record("disk1")).error, "");
}

TEST_F(LunManagerTest, ALunThatIsBeingDeletedIsBusy) {
  ASSERT_TRUE(luns_->create(specification("disk1")));
  bool done = false;
  luns_->remove("disk1", [&](Status) { done = true; });
  EXPECT_EQ(luns_->resize("disk1", 2 << 20).error().code, rpc::Errc::busy);
  EXPECT_EQ(luns_->create(specification("disk1")).error().code, rpc::Errc::busy);
  EXPECT_EQ(remove("disk1").error().code, rpc::Errc::busy);
  reactor_->run_until([&] { return done; }, std::chrono::seconds(60));
  EXPECT_TRUE(luns_->create(specification("disk1")));
}

TEST_F(LunManagerTest, AMissingFileDoesNotStopTheOthers) {
  ASSERT_TRUE(luns_->create(specification("disk1")));
  ASSERT_TRUE(luns_->create(specification("disk2")));
  stop();
  store_.emplace(*StateStore::open(dir_ / "state"));
  const std::string file = file_of("disk1");
  store_.reset();
  std::filesystem::rename(file, file + ".away");
  start();

  ASSERT_EQ(remarks_.size(), 1U);
  EXPECT_NE(remarks_[0].find("disk1"), std::string::npos);
  EXPECT_NE(luns_->status(record("disk1")).error, "");
  EXPECT_EQ(luns_->status(record("disk2")).error, "");

  std::filesystem::rename(file + ".away", file);
  EXPECT_EQ(luns_->retry_failed(), std::vector<std::string>{"disk1"});
  EXPECT_EQ(luns_->status(record("disk1")).error, "");
}

TEST_F(LunManagerTest, AFileThatWasCutShortIsNotServed) {
  ASSERT_TRUE(luns_->create(specification("disk1")));
  const std::string file = file_of("disk1");
  stop();
  std::filesystem::resize_file(file, 512 * 1024);
  start();
  EXPECT_EQ(remarks_.size(), 1U);
  EXPECT_TRUE(luns_->open_targets().empty());
}

TEST_F(LunManagerTest, AGrownLunStaysGrown) {
  ASSERT_TRUE(luns_->create(specification("disk1")));
  ASSERT_TRUE(luns_->resize("disk1", 2 << 20));
  EXPECT_EQ(record("disk1").size_bytes, 2U << 20);
  restart();
  EXPECT_EQ(record("disk1").size_bytes, 2U << 20);
  EXPECT_TRUE(remarks_.empty());
}

TEST_F(LunManagerTest, AGrowthThatCannotBeRecordedDoesNotHappen) {
  ASSERT_TRUE(luns_->create(specification("disk1")));
  break_saving(true);
  EXPECT_FALSE(luns_->resize("disk1", 2 << 20));
  break_saving(false);
  restart();
  EXPECT_EQ(record("disk1").size_bytes, 1U << 20);
  EXPECT_TRUE(remarks_.empty());
}

TEST_F(LunManagerTest, ALunNeverShrinks) {
  ASSERT_TRUE(luns_->create(specification("disk1")));
  EXPECT_EQ(luns_->resize("disk1", 512).error().code, rpc::Errc::usage);
  EXPECT_FALSE(luns_->resize("disk1", (1 << 20) + 100));
  EXPECT_TRUE(luns_->resize("disk1", 1 << 20));
  EXPECT_EQ(std::filesystem::file_size(file_of("disk1")), 1U << 20);
}

TEST_F(LunManagerTest, ALunIsFoundByNameAndByNaa) {
  ASSERT_TRUE(luns_->create(specification("disk1")));
  const std::string naa = fmt::format("{:016x}", luns_->status(record("disk1")).naa);
  EXPECT_EQ((*luns_->find("disk1"))->name, "disk1");
  EXPECT_EQ((*luns_->find(naa))->name, "disk1");
  EXPECT_EQ((*luns_->find("0x" + naa))->name, "disk1");
  EXPECT_FALSE(luns_->find("disk2"));
}

TEST_F(LunManagerTest, FaultsNeedPermission) {
  ASSERT_TRUE(luns_->create(specification("disk1")));
  EXPECT_EQ(luns_->fault_controls("disk1").error().code, rpc::Errc::permission);
  config_.allow_test_faults = true;
  restart();
  ASSERT_TRUE(luns_->fault_controls("disk1"));
  EXPECT_NE(luns_->fault_controls("disk1")->delay, nullptr);
  EXPECT_NE(luns_->fault_controls("disk1")->error, nullptr);
}

}  // namespace
}  // namespace vjbod::target
