// SPDX-License-Identifier: Apache-2.0
#include "target/control/config.h"

#include <gtest/gtest.h>

#include "common/iscsi/name.h"

namespace vjbod::target {
namespace {

std::string error_of(std::string_view text) {
  Result<TargetConfig> config = parse_config(text, "target.toml");
  return config ? "no error" : config.error().text;
}

TEST(TargetConfig, TheDocumentedExampleIsRead) {
  Result<TargetConfig> config = parse_config(R"(
name = "nas2"
state_dir = "/var/lib/vjbod/target"
control_socket = "/run/vjbod/target.sock"
iqn_prefix = "iqn.2026-11.io.vjbod"
[control]
listen = "[::]:7443"
[[portal]]
address = "[::]:3260"
transports = ["iscsi", "iser"]
[[pool]]
name = "tank"
kind = "directory"
path = "/srv/vjbod"
)",
                                             "target.toml");
  ASSERT_TRUE(config) << config.error().text;
  EXPECT_EQ(config->name, "nas2");
  EXPECT_EQ(config->control_listen, "[::]:7443");
  ASSERT_EQ(config->portals.size(), 1U);
  EXPECT_EQ(config->portals[0].address, "::");
  EXPECT_EQ(config->portals[0].port, 3260);
  ASSERT_EQ(config->pools.size(), 1U);
  EXPECT_EQ(config->pools[0].path, "/srv/vjbod");
  EXPECT_EQ(target_iqn(*config, "disk1"), "iqn.2026-11.io.vjbod:nas2.disk1");
}

TEST(TargetConfig, AnEmptyFileGivesDefaultsThatWork) {
  Result<TargetConfig> config = parse_config("name = \"a\"", "target.toml");
  ASSERT_TRUE(config) << config.error().text;
  EXPECT_EQ(config->portals.size(), 1U);
  EXPECT_GE(config->shards, 1U);
  EXPECT_LE(config->shards, TargetConfig::shards_auto_max);
  EXPECT_GE(config->buffer_memory_bytes, config->shards * TargetConfig::shard_memory_bytes_min);
  EXPECT_FALSE(config->allow_test_faults);
}

TEST(TargetConfig, ErrorsNameFileLineAndReason) {
  EXPECT_EQ(error_of("name = \"nas2\"\nnmae = 1\n"), "target.toml:2: nmae: unknown key");
  EXPECT_TRUE(error_of("name = \"NAS\"").starts_with("target.toml:1: name: box name \"NAS\""));
  EXPECT_TRUE(error_of("name = \"a\"\n[[portal]]\naddress = \"nas\"\n")
                  .starts_with("target.toml:3: portal.address: must be an IPv4 or IPv6 address"));
  EXPECT_TRUE(error_of("name = \"a\"\n[[pool]]\nname = \"p\"\nkind = \"lvm\"\npath = \"/p\"\n")
                  .starts_with("target.toml:4: pool.kind:"));
  EXPECT_TRUE(error_of("name = \"a\"\n[[pool]]\nname = \"p\"\npath = \"p\"\n")
                  .starts_with("target.toml:4: pool.path: must be an absolute path"));
  EXPECT_TRUE(error_of("name = \"a\"\niqn_prefix = \"nonsense\"")
                  .starts_with("target.toml:2: iqn_prefix:"));
  EXPECT_TRUE(error_of("name = \"a\"\n[chap]\nalgorithms = [\"rot13\"]")
                  .starts_with("target.toml:3: chap.algorithms:"));
}

TEST(TargetConfig, PoolsHaveDifferentNamesAndPaths) {
  EXPECT_TRUE(error_of("name = \"a\"\n[[pool]]\nname = \"p\"\npath = \"/p\"\n[[pool]]\nname = "
                       "\"p\"\npath = \"/q\"\n")
                  .find("another pool has this name") != std::string::npos);
  EXPECT_TRUE(error_of("name = \"a\"\n[[pool]]\nname = \"p\"\npath = \"/p\"\n[[pool]]\nname = "
                       "\"q\"\npath = \"/p\"\n")
                  .find("another pool has this path") != std::string::npos);
}

TEST(TargetConfig, APoolInMemoryHasNoPathAndOneOnADeviceHas) {
  const auto config = parse_config(
      "name = \"a\"\n[[pool]]\nname = \"m\"\nkind = \"memory\"\n[[pool]]\nname = \"n\"\nkind = "
      "\"memory\"\n[[pool]]\nname = \"b\"\nkind = \"block\"\npath = \"/dev/vdb\"\n",
      "target.toml");
  ASSERT_TRUE(config) << config.error().text;
  EXPECT_EQ(config->pools[0].kind, PoolConfig::Kind::memory);
  EXPECT_EQ(config->pools[2].kind, PoolConfig::Kind::block);
  EXPECT_TRUE(error_of("name = \"a\"\n[[pool]]\nname = \"m\"\nkind = \"memory\"\npath = \"/m\"\n")
                  .find("a pool in memory has none") != std::string::npos);
  EXPECT_TRUE(error_of("name = \"a\"\n[[pool]]\nname = \"b\"\nkind = \"block\"\n")
                  .find("must be an absolute path") != std::string::npos);
}

TEST(TargetConfig, TheLongestNamesStillGiveAnIscsiName) {
  Result<TargetConfig> config =
      parse_config("name = \"" + std::string(63, 'n') + "\"", "target.toml");
  ASSERT_TRUE(config) << config.error().text;
  EXPECT_TRUE(iscsi::normalised_name(target_iqn(*config, std::string(63, 'l'))));
  EXPECT_NE(error_of("name = \"a\"\niqn_prefix = \"iqn.2026-11." + std::string(160, 'x') + "\""),
            "no error");
}

}  // namespace
}  // namespace vjbod::target
