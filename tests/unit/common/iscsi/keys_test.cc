// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/keys.h"

#include <set>

#include <gtest/gtest.h>

#include "common/iscsi/text.h"

namespace vjbod::iscsi {
namespace {

TEST(Keys, EveryKeyIsFoundByItsName) {
  std::set<std::string_view> names;
  for (const KeyInfo& key : key_table()) {
    EXPECT_EQ(find_key(key.name), &info_of(key.key));
    EXPECT_LE(key.name.size(), key_name_bytes_max);
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
  }
  EXPECT_EQ(names.size(), key_count);
}

TEST(Keys, NamesAreCaseSensitive) {
  EXPECT_EQ(find_key("initiatorname"), nullptr);
  EXPECT_EQ(find_key(""), nullptr);
  EXPECT_EQ(find_key("X-com.example"), nullptr);
}

TEST(Keys, DefaultsAreInRange) {
  for (const KeyInfo& key : key_table()) {
    if (key.type == KeyType::number) {
      EXPECT_TRUE(in_range(key, key.default_value)) << key.name;
    }
  }
}

TEST(Keys, RangesAreThoseOfTheRfc) {
  const KeyInfo& segment = info_of(Key::max_recv_data_segment_length);
  EXPECT_FALSE(in_range(segment, 0));
  EXPECT_FALSE(in_range(segment, 511));
  EXPECT_TRUE(in_range(segment, 512));
  EXPECT_TRUE(in_range(segment, 0xffffff));
  EXPECT_FALSE(in_range(segment, 0x1000000));
  const KeyInfo& unexpected = info_of(Key::max_outstanding_unexpected_pdus);
  EXPECT_TRUE(in_range(unexpected, 0));
  EXPECT_FALSE(in_range(unexpected, 1));
  EXPECT_TRUE(in_range(unexpected, 2));
}

TEST(Keys, SomeBelongToOneEndOnly) {
  EXPECT_FALSE(may_send(info_of(Key::initiator_name), Side::target));
  EXPECT_FALSE(may_send(info_of(Key::target_alias), Side::initiator));
  EXPECT_TRUE(may_send(info_of(Key::header_digest), Side::initiator));
  EXPECT_TRUE(may_send(info_of(Key::header_digest), Side::target));
}

}  // namespace
}  // namespace vjbod::iscsi
