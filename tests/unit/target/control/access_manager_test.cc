// SPDX-License-Identifier: Apache-2.0
#include "target/control/access_manager.h"

#include <gtest/gtest.h>

#include "common/rpc/errc.h"
#include "tests/unit/target/control/manager_fixture.h"

namespace vjbod::target {
namespace {

constexpr const char* nas1_iqn = "iqn.2026-11.io.vjbod:nas1";
constexpr const char* esx_iqn = "iqn.1998-01.com.vmware:esx1";

class AccessManagerTest : public ManagerFixture {
 protected:
  AccessManagerTest() {
    EXPECT_TRUE(luns_->create(specification("disk1")));
    EXPECT_TRUE(access_->add_host(host("nas1", 1, nas1_iqn)));
  }
  static PairedHost host(std::string name, uint8_t number, std::string iqn) {
    PairedHost result;
    result.name = std::move(name);
    result.fingerprint.bytes.fill(std::byte{number});
    result.initiator_iqn = std::move(iqn);
    return result;
  }
  Status bind(const std::string& lun, const std::string& to) {
    return wait([&](auto done) { access_->bind(lun, to, done); });
  }
  std::string secret(const std::string& lun) {
    return std::string(as_text(record(lun).binding->chap.secret.bytes()));
  }
  LoginDecision::Access login(const char* initiator) {
    return policy_->decide({initiator, record("disk1").target_iqn, false}).access;
  }
};

using Access = LoginDecision::Access;

TEST_F(AccessManagerTest, ABoundLunIsTheHostsAlone) {
  ASSERT_TRUE(bind("disk1", "nas1"));
  EXPECT_EQ(login(nas1_iqn), Access::allowed);
  const LunBinding& binding = *record("disk1").binding;
  EXPECT_GE(binding.chap.secret.bytes().size(), iscsi::chap_secret_bytes_min);
  EXPECT_FALSE(binding.chap.secret.same_as(binding.mutual.secret));
}

TEST_F(AccessManagerTest, BindingAgainGivesFreshSecrets) {
  ASSERT_TRUE(bind("disk1", "nas1"));
  const std::string before = secret("disk1");
  ASSERT_TRUE(bind("disk1", "nas1"));
  EXPECT_NE(secret("disk1"), before);
}

TEST_F(AccessManagerTest, NobodyTakesALunFromAnotherHost) {
  ASSERT_TRUE(access_->add_host(host("nas3", 3, "iqn.2026-11.io.vjbod:nas3")));
  ASSERT_TRUE(bind("disk1", "nas1"));
  EXPECT_EQ(bind("disk1", "nas3").error().code, rpc::Errc::bound_to_another_host);
  EXPECT_EQ(record("disk1").binding->host, "nas1");
}

TEST_F(AccessManagerTest, AnUnboundLunIsReachedByNobody) {
  ASSERT_TRUE(bind("disk1", "nas1"));
  ASSERT_TRUE(wait([&](auto done) { access_->unbind("disk1", done); }));
  EXPECT_EQ(login(nas1_iqn), Access::not_found);
  EXPECT_FALSE(record("disk1").binding);
  EXPECT_TRUE(wait([&](auto done) { access_->unbind("disk1", done); }));
}

TEST_F(AccessManagerTest, UnpairingForgetsBindingsAndSecrets) {
  ASSERT_TRUE(bind("disk1", "nas1"));
  ASSERT_TRUE(wait([&](auto done) { access_->remove_host("nas1", done); }));
  EXPECT_FALSE(record("disk1").binding);
  EXPECT_EQ(login(nas1_iqn), Access::forbidden);
  EXPECT_EQ(dir_.read("state/target.json").find("secret"), std::string::npos);
  EXPECT_EQ(access_->find_host(host("", 1, "").fingerprint), nullptr);
  EXPECT_TRUE(std::filesystem::exists(file_of("disk1")));
}

TEST_F(AccessManagerTest, AHostMayComeBackWithAnotherName) {
  ASSERT_TRUE(bind("disk1", "nas1"));
  ASSERT_TRUE(access_->add_host(host("new-name", 1, "iqn.2026-11.io.vjbod:new")));
  EXPECT_EQ(store_->state().hosts.size(), 1U);
  EXPECT_EQ(record("disk1").binding->host, "new-name");
  EXPECT_EQ(login("iqn.2026-11.io.vjbod:new"), Access::allowed);
  EXPECT_EQ(login(nas1_iqn), Access::forbidden);
}

TEST_F(AccessManagerTest, ANameOrIqnOfAnotherHostIsRefused) {
  EXPECT_EQ(access_->add_host(host("nas1", 2, "iqn.2026-11.x:y")).error().code,
            rpc::Errc::already_exists);
  EXPECT_EQ(access_->add_host(host("nas3", 2, nas1_iqn)).error().code, rpc::Errc::already_exists);
  EXPECT_EQ(access_->add_host(host("nas3", 2, "IQN.2026-11.io.vjbod:NAS1")).error().code,
            rpc::Errc::already_exists);
}

TEST_F(AccessManagerTest, HostileNamesAreNotStored) {
  for (const char* name : {"", "../nas", "NAS", "a\x1b[2J"})
    EXPECT_FALSE(access_->add_host(host(name, 2, "iqn.2026-11.x:y"))) << name;
  for (const char* iqn : {"", "nas1", "iqn.2026-11.x:a\nb", "iqn.2026-11.x:../y"})
    EXPECT_FALSE(access_->add_host(host("nas3", 2, iqn))) << iqn;
  EXPECT_EQ(store_->state().hosts.size(), 1U);
}

TEST_F(AccessManagerTest, NoMoreHostsThanTheLimit) {
  for (size_t i = 1; i < TargetState::hosts_max; ++i)
    ASSERT_TRUE(access_->add_host(host(fmt::format("h{}", i), static_cast<uint8_t>(i + 1),
                                       fmt::format("iqn.2026-11.x:h{}", i))));
  EXPECT_EQ(access_->add_host(host("last", 200, "iqn.2026-11.x:last")).error().code,
            rpc::Errc::no_space);
}

TEST_F(AccessManagerTest, AForeignInitiatorIsAllowedAndDenied) {
  ASSERT_TRUE(access_->add_initiator({esx_iqn, {}, {}}));
  EXPECT_EQ(login(esx_iqn), Access::not_found);
  ASSERT_TRUE(access_->allow(esx_iqn, "disk1"));
  EXPECT_EQ(login(esx_iqn), Access::allowed);
  EXPECT_TRUE(access_->allow(esx_iqn, "disk1"));
  ASSERT_TRUE(wait([&](auto done) { access_->deny(esx_iqn, "disk1", done); }));
  EXPECT_EQ(login(esx_iqn), Access::not_found);
  ASSERT_TRUE(wait([&](auto done) { access_->remove_initiator(esx_iqn, done); }));
  EXPECT_EQ(login(esx_iqn), Access::forbidden);
}

TEST_F(AccessManagerTest, TwoSidesNeverShareALun) {
  ASSERT_TRUE(access_->add_initiator({esx_iqn, {}, {}}));
  ASSERT_TRUE(access_->allow(esx_iqn, "disk1"));
  EXPECT_EQ(bind("disk1", "nas1").error().code, rpc::Errc::busy);
  ASSERT_TRUE(wait([&](auto done) { access_->deny(esx_iqn, "disk1", done); }));
  ASSERT_TRUE(bind("disk1", "nas1"));
  EXPECT_EQ(access_->allow(esx_iqn, "disk1").error().code, rpc::Errc::bound_to_another_host);
}

TEST_F(AccessManagerTest, AHostsInitiatorIsNoForeignOne) {
  EXPECT_EQ(access_->add_initiator({nas1_iqn, {}, {}}).error().code, rpc::Errc::already_exists);
}

TEST_F(AccessManagerTest, WeakCredentialsAreRefused) {
  auto add = [&](std::optional<iscsi::ChapCredentials> chap,
                 std::optional<iscsi::ChapCredentials> mutual) {
    ForeignInitiator initiator{esx_iqn, std::move(chap), std::move(mutual)};
    return access_->add_initiator(std::move(initiator)).has_value();
  };
  auto made = [](std::string user, std::string_view secret) {
    return iscsi::ChapCredentials{std::move(user), iscsi::Secret(secret)};
  };
  EXPECT_FALSE(add(made("user", "short"), std::nullopt));
  EXPECT_FALSE(add(made("", "long enough secret"), std::nullopt));
  EXPECT_FALSE(add(made("us\ner", "long enough secret"), std::nullopt));
  EXPECT_FALSE(add(std::nullopt, made("user", "long enough secret")));
  EXPECT_FALSE(add(made("user", "long enough secret"), made("box", "long enough secret")));
  EXPECT_TRUE(add(made("user", "long enough secret"), made("box", "another long secret")));
}

TEST_F(AccessManagerTest, AChangeThatCannotBeSavedChangesNothing) {
  break_saving(true);
  EXPECT_FALSE(bind("disk1", "nas1"));
  break_saving(false);
  EXPECT_EQ(login(nas1_iqn), Access::not_found);
  EXPECT_FALSE(record("disk1").binding);
}

TEST_F(AccessManagerTest, UnknownNamesAreNamed) {
  EXPECT_EQ(bind("disk9", "nas1").error().code, rpc::Errc::not_found);
  EXPECT_EQ(bind("disk1", "nas9").error().code, rpc::Errc::not_found);
  EXPECT_EQ(access_->allow(esx_iqn, "disk1").error().code, rpc::Errc::not_found);
}

}  // namespace
}  // namespace vjbod::target
