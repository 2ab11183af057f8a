// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/name.h"

#include <gtest/gtest.h>

#include "common/iscsi/errc.h"

namespace vjbod::iscsi {
namespace {

using std::string_literals::operator""s;

TEST(Name, TakesTheNamesThatPeopleUse) {
  for (const char* name :
       {"iqn.2016-04.com.open-iscsi:4c1a2b3d", "iqn.1993-08.org.debian:01:9ab",
        "iqn.2008-11.org.linux-kvm", "iqn.1991-05.com.microsoft:host-1.example.com",
        "iqn.2001-04.com.example:storage:diskarrays-sn-a8675309", "eui.02004567a425678d",
        "naa.52004567ba64678d", "naa.62004567ba64678d0123456789abcdef"}) {
    auto normalised = normalised_name(name);
    ASSERT_TRUE(normalised) << normalised.error().text;
    EXPECT_EQ(*normalised, name);
  }
}

TEST(Name, IsComparedInLowerCase) {
  EXPECT_EQ(normalised_name("IQN.2004-10.Com.Example:Disk-A"), "iqn.2004-10.com.example:disk-a");
  EXPECT_EQ(normalised_name("EUI.02004567A425678D"), "eui.02004567a425678d");
}

TEST(Name, MayHave223BytesAndNotOneMore) {
  const std::string longest = "iqn.2004-10.com.example:" + std::string(223 - 24, 'x');
  ASSERT_EQ(longest.size(), 223U);
  EXPECT_TRUE(normalised_name(longest));
  EXPECT_EQ(normalised_name(longest + "x").error().code, Errc::bad_name);
}

struct Bad {
  std::string name;
  const char* reason;
};
class BadName : public testing::TestWithParam<Bad> {};

TEST_P(BadName, IsRefusedWithItsReason) {
  auto normalised = normalised_name(GetParam().name);
  ASSERT_FALSE(normalised);
  EXPECT_EQ(normalised.error().code, Errc::bad_name);
  EXPECT_NE(normalised.error().text.find(GetParam().reason), std::string::npos)
      << normalised.error().text;
}

INSTANTIATE_TEST_SUITE_P(
    All, BadName,
    testing::Values(
        Bad{"", "is empty"}, Bad{"disk1", "begins with"}, Bad{"iqn", "begins with"},
        Bad{"iqn.2004-10.com.example:a/b", "byte 26 is 0x2f"},
        Bad{"iqn.2004-10.com.example:../../etc", "0x2f"},
        Bad{"iqn.2004-10.com.example:a..b", "two dots"}, Bad{"iqn.2004-10.com.example:a b", "0x20"},
        Bad{"iqn.2004-10.com.example:a\nb", "0x0a"}, Bad{"iqn.2004-10.com.example:a\0b"s, "0x00"},
        Bad{"iqn.2004-10.com.example:a\x7f", "0x7f"},
        Bad{"iqn.2004-10.com.example:a\x1b[31m", "0x1b"},
        Bad{"iqn.2004-10.com.example:\xc3\xa4", "0xc3"}, Bad{"iqn.2004-10.com.example:a_b", "0x5f"},
        Bad{"iqn.2004-10.com.example:", "nothing follows"}, Bad{"iqn.2004-13.com.example", "month"},
        Bad{"iqn.2004-00.com.example", "month"}, Bad{"iqn.204-10.com.example", "year"},
        Bad{"iqn.2004-1", "year"}, Bad{"iqn.", "year"}, Bad{"iqn.2004-10", "reversed domain"},
        Bad{"iqn.2004-10.", "reversed domain"}, Bad{"iqn.2004-10:disk", "reversed domain"},
        Bad{"iqn.2004-10com.example", "reversed domain"},
        Bad{"iqn.2004-10.com.:disk", "ends with a dot"}, Bad{"eui.", "16 hex"},
        Bad{"eui.02004567a425678", "16 hex"}, Bad{"eui.02004567a425678dd", "16 hex"},
        Bad{"eui.02004567a425678g", "16 hex"}, Bad{"naa.52004567ba64678", "16 or 32"},
        Bad{"naa.52004567ba64678dff", "16 or 32"}));

TEST(Name, ErrorsShowNothingUnprintable) {
  const std::string text = normalised_name("iqn.\x1b[2J\xff").error().text;
  for (char c : text) EXPECT_TRUE(c >= ' ' && c <= '~');
}

}  // namespace
}  // namespace vjbod::iscsi
