// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "target/control/state_store.h"
#include "tests/support/temp_dir.h"

namespace vjbod::target {
namespace {

iscsi::ChapCredentials credentials(std::string_view user, std::string_view secret) {
  return {std::string(user), iscsi::Secret(secret)};
}

TargetState sample() {
  TargetState state;
  PairedHost host;
  host.name = "nas1";
  host.fingerprint.bytes.fill(std::byte{7});
  host.initiator_iqn = "iqn.2026-11.io.vjbod:nas1";
  state.hosts.emplace("nas1", host);
  ForeignInitiator foreign;
  foreign.iqn = "iqn.1998-01.com.vmware:esx1";
  foreign.chap = credentials("esx", std::string_view("secret\0bytes\xff", 13));
  foreign.mutual = credentials("box", "mutual secret");
  state.initiators.emplace(foreign.iqn, std::move(foreign));
  LunRecord lun;
  lun.name = "disk1";
  lun.uuid.fill(std::byte{0x5a});
  lun.target_iqn = "iqn.2026-11.io.vjbod:nas2.disk1";
  lun.pool = "tank";
  lun.size_bytes = 1 << 30;
  lun.block_size = 4096;
  lun.request_id = "abc";
  lun.binding =
      LunBinding{"nas1", credentials("u", "secret one two"), credentials("m", "secret 3")};
  state.luns.emplace("disk1", std::move(lun));
  LunRecord shared;
  shared.name = "disk2";
  shared.uuid.fill(std::byte{0x11});
  shared.target_iqn = "iqn.2026-11.io.vjbod:nas2.disk2";
  shared.pool = "tank";
  shared.size_bytes = 512;
  shared.thick = true;
  shared.allowed_initiators = {"iqn.1998-01.com.vmware:esx1"};
  state.luns.emplace("disk2", std::move(shared));
  state.doomed.insert({"tank", "2f1b0c3e-0000-4000-8000-000000000001"});
  return state;
}

TEST(TargetState, ComesBackAsItWas) {
  nlohmann::json json = to_json(sample());
  Result<TargetState> back = state_from_json(json);
  ASSERT_TRUE(back) << back.error().text;
  EXPECT_EQ(to_json(*back), json);
  EXPECT_EQ(as_text(back->initiators.begin()->second.chap->secret.bytes()),
            std::string_view("secret\0bytes\xff", 13));
}

TEST(TargetState, EveryMissingOrWrongFieldIsAnError) {
  const nlohmann::json good = to_json(sample());
  for (const char* list : {"luns", "initiators", "hosts", "doomed"}) {
    for (const auto& [key, value] : good[list][0].items()) {
      nlohmann::json wrong = good;
      wrong[list][0][key] = nlohmann::json::array({1});
      EXPECT_FALSE(state_from_json(wrong)) << list << "." << key;
      nlohmann::json missing = good;
      missing[list][0].erase(key);
      const std::string name = key;
      bool optional = name == "binding" || name == "mutual";
      EXPECT_EQ(state_from_json(missing).has_value(), optional) << list << "." << key;
    }
  }
}

TEST(TargetState, AListThatIsMissingOrNoListIsNotTakenForAnEmptyOne) {
  for (const char* list : {"luns", "initiators", "hosts", "doomed"}) {
    nlohmann::json json = to_json(TargetState());
    json.erase(list);
    EXPECT_FALSE(state_from_json(json)) << list;
    for (const auto& wrong :
         {nlohmann::json(nullptr), nlohmann::json::object(), nlohmann::json(1)}) {
      json[list] = wrong;
      EXPECT_FALSE(state_from_json(json)) << list << " = " << wrong;
    }
  }
  EXPECT_TRUE(state_from_json(nlohmann::json::object()));
}

TEST(TargetState, NamesThatCouldLeadElsewhereAreRefused) {
  for (const char* bad : {"../x", "a/b", "", "A", "a\n"}) {
    nlohmann::json json = to_json(sample());
    json["luns"][0]["name"] = bad;
    EXPECT_FALSE(state_from_json(json)) << bad;
    json = to_json(sample());
    json["doomed"][0]["file"] = bad;
    EXPECT_FALSE(state_from_json(json)) << bad;
  }
}

TEST(TargetState, TwoLunsNeverShareATargetOrAFile) {
  nlohmann::json json = to_json(sample());
  json["luns"][1]["target_iqn"] = json["luns"][0]["target_iqn"];
  EXPECT_FALSE(state_from_json(json));
  json = to_json(sample());
  json["luns"][1]["uuid"] = json["luns"][0]["uuid"];
  EXPECT_FALSE(state_from_json(json));
  json = to_json(sample());
  json["luns"][1] = json["luns"][0];
  EXPECT_FALSE(state_from_json(json));
}

TEST(TargetState, ALunIsBoundToAKnownHostOnly) {
  nlohmann::json json = to_json(sample());
  json["hosts"] = nlohmann::json::array();
  EXPECT_FALSE(state_from_json(json));
}

TEST(Uuid, TextIsReadBackAndNothingElseIs) {
  std::string text = "2f1b0c3e-0102-4304-8506-0708090a0b0c";
  ASSERT_TRUE(parse_uuid(text));
  EXPECT_EQ(uuid_text(*parse_uuid(text)), text);
  EXPECT_FALSE(parse_uuid(text.substr(1)));
  EXPECT_FALSE(parse_uuid("2F1b0c3e-0102-4304-8506-0708090a0b0c"));
  EXPECT_FALSE(parse_uuid("2f1b0c3e00102-4304-8506-0708090a0b0c"));
}

TEST(StateStore, AChangeThatCannotBeSavedDidNotHappen) {
  test::TempDir dir;
  Result<StateStore> store = StateStore::open(dir.path());
  ASSERT_TRUE(store) << store.error().text;
  ASSERT_TRUE(store->change([](TargetState& state) { state = sample(); }));
  std::filesystem::create_directory(dir / "target.json.new");

  Status changed = store->change([](TargetState& state) { state.luns.clear(); });

  EXPECT_FALSE(changed);
  EXPECT_EQ(store->state().luns.size(), 2U);
  std::filesystem::remove(dir / "target.json.new");
  EXPECT_EQ(StateStore::open(dir.path())->state().luns.size(), 2U);
}

TEST(StateStore, AFileThatMakesNoSenseIsRefusedAndKept) {
  test::TempDir dir;
  dir.write("target.json", R"({"version": 1, "luns": [{"name": "disk1"}]})");
  Result<StateStore> store = StateStore::open(dir.path());
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, config::StateErrc::damaged);
  EXPECT_NE(store.error().text.find("luns[0]"), std::string::npos);
  EXPECT_NE(dir.read("target.json").find("disk1"), std::string::npos);
}

}  // namespace
}  // namespace vjbod::target
