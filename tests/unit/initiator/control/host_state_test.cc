// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/host_state.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/temp_dir.h"

namespace vjbod::initiator {
namespace {

using nlohmann::json;

class HostStateTest : public testing::Test {
 protected:
  HostState load() {
    Result<HostState> state = HostState::load(dir_.path());
    EXPECT_TRUE(state) << state.error().text;
    return std::move(*state);
  }
  // With one of everything.
  HostState full() {
    HostState state = load();
    state.initiator_iqn = "iqn.2026-11.io.vjbod:nas1";
    state.peers["nas2"] = {"nas2", "10.0.0.2", 7443, rpc::Fingerprint{}, "2026-11-01T00:00:00Z"};
    DiskRecord disk;
    disk.name = "disk1";
    disk.uuid = "2f1b0c3e-0102-4304-8506-0708090a0b0c";
    disk.phase = DiskRecord::Phase::ready;
    disk.peer = "nas2";
    disk.pool = "tank";
    disk.lun_name = "disk1";
    disk.size_bytes = 1 << 20;
    disk.target_iqn = "iqn.2026-11.io.vjbod:nas2.disk1";
    disk.portals = {{"10.0.0.2", 3260, "10.0.0.1", "eth0"}};
    disk.chap = StoredChap{"a", "secret"};
    disk.mutual = StoredChap{"b", "another"};
    disk.isid = "80aabbccddee";
    disk.identity = DiskIdentity{"naa.3000000000000001", "serial", 1 << 20, 512};
    disk.geometry = BlockGeometry{};
    state.disks["disk1"] = disk;
    state.farewells["uuid-1"] = {"nas2", "3000000000000002",     "disk2", "",
                                 {},     "2026-11-01T00:00:00Z", ""};
    return state;
  }
  json content() {
    std::ifstream file(dir_ / "host.json");
    return json::parse(file);
  }
  void write(const json& content) { std::ofstream(dir_ / "host.json") << content; }
  // The disk refuses to save the state until it is called with false.
  void break_saving(bool broken) {
    if (broken)
      std::filesystem::create_directory(dir_ / "host.json.new");
    else
      std::filesystem::remove(dir_ / "host.json.new");
  }

  test::TempDir dir_;
};

void collect_places(const json& value, const json::json_pointer& place,
                    std::vector<json::json_pointer>& places) {
  if (value.is_object()) {
    for (const auto& [key, entry] : value.items()) collect_places(entry, place / key, places);
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) collect_places(value[i], place / i, places);
  } else {
    places.push_back(place);
  }
}

// Came to be without a new version of the file: a file without them has the defaults.
bool younger_than_version(const std::string& place) {
  return place == "/disks/0/choices/upgrade" || place == "/disks/0/portals/0/transport";
}

TEST_F(HostStateTest, AStateOfBeforeIserIsRead) {
  ASSERT_TRUE(full().save());
  json before = content();
  before[json::json_pointer("/disks/0/choices")].erase("upgrade");
  before[json::json_pointer("/disks/0/portals/0")].erase("transport");
  write(before);
  const HostState state = load();
  EXPECT_EQ(state.disks.at("disk1").choices.upgrade, "manual");
  EXPECT_EQ(state.disks.at("disk1").portals[0].transport, "iscsi");
}

TEST_F(HostStateTest, ComesBackAsItWas) {
  ASSERT_TRUE(full().save());
  const json before = content();

  ASSERT_TRUE(load().save());

  EXPECT_EQ(content(), before);
}

TEST_F(HostStateTest, EveryWrongOrMissingFieldIsAnErrorAndTheFileStays) {
  ASSERT_TRUE(full().save());
  const json good = content();
  std::vector<json::json_pointer> places;
  collect_places(good, json::json_pointer(), places);
  ASSERT_GT(places.size(), 50U);
  for (const auto& place : places) {
    for (const json& wrong : {json::object(), json(-1), json(1.5), json(json::array({"x"}))}) {
      json bad = good;
      bad[place] = wrong;
      write(bad);
      Result<HostState> state = HostState::load(dir_.path());
      EXPECT_FALSE(state) << place << " = " << wrong;
      EXPECT_EQ(content(), bad);
    }
    if (place.parent_pointer().empty() && place.back() == "version") continue;
    if (younger_than_version(place.to_string())) continue;
    json lacking = good;
    lacking[place.parent_pointer()].erase(place.back());
    write(lacking);
    EXPECT_FALSE(HostState::load(dir_.path())) << place << " is missing";
  }
}

TEST_F(HostStateTest, TokensThatNobodyKnowsAreNotGuessed) {
  ASSERT_TRUE(full().save());
  const json good = content();
  for (const char* place :
       {"/disks/0/phase", "/disks/0/choices/transport", "/disks/0/choices/on_loss",
        "/disks/0/choices/backend", "/disks/0/choices/upgrade", "/disks/0/portals/0/transport",
        "/farewells/0/ending", "/disks/0/name", "/peers/0/name", "/disks/0/choices/host_interface",
        "/disks/0/target_iqn", "/initiator_iqn"}) {
    json bad = good;
    bad[json::json_pointer(place)] = "../\x1b[31m";
    write(bad);
    EXPECT_FALSE(HostState::load(dir_.path())) << place;
  }
}

TEST_F(HostStateTest, NothingIsThereTwice) {
  ASSERT_TRUE(full().save());
  const json good = content();
  for (const char* list : {"disks", "peers"}) {
    json bad = good;
    bad[list].push_back(bad[list][0]);
    write(bad);
    EXPECT_FALSE(HostState::load(dir_.path())) << list;
  }
}

TEST_F(HostStateTest, WhatIsNoListIsNotTakenForAnEmptyOne) {
  ASSERT_TRUE(full().save());
  const json good = content();
  for (const char* list : {"/disks", "/peers", "/farewells", "/disks/0/portals"}) {
    for (const json& wrong : {json(nullptr), json::object(), json(1), json("")}) {
      json bad = good;
      bad[json::json_pointer(list)] = wrong;
      write(bad);
      EXPECT_FALSE(HostState::load(dir_.path())) << list << " = " << wrong;
    }
  }
}

TEST_F(HostStateTest, AStateWithoutFarewellsIsRead) {
  ASSERT_TRUE(full().save());
  json older = content();
  older.erase("farewells");
  write(older);

  EXPECT_TRUE(load().farewells.empty());
}

TEST_F(HostStateTest, AChangeThatCannotBeSavedDidNotHappen) {
  HostState state = full();
  ASSERT_TRUE(state.save());
  const json before = content();
  break_saving(true);

  Status changed = state.change([](HostState& edited) {
    edited.initiator_iqn.clear();
    edited.peers.clear();
    edited.disks.clear();
    edited.farewells.clear();
  });

  EXPECT_FALSE(changed);
  EXPECT_EQ(content(), before);
  EXPECT_TRUE(state.peers.contains("nas2") && state.disks.contains("disk1"));
  EXPECT_EQ(state.farewells.size(), 1U);
  break_saving(false);
  ASSERT_TRUE(state.save());
  EXPECT_EQ(content(), before);
}

}  // namespace
}  // namespace vjbod::initiator
