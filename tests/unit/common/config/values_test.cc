// SPDX-License-Identifier: Apache-2.0
#include "common/config/values.h"

#include <gtest/gtest.h>

namespace vjbod::config {
namespace {

using namespace std::chrono_literals;

TEST(Name, FollowsTheGrammar) {
  EXPECT_TRUE(is_name("disk1"));
  EXPECT_TRUE(is_name("0"));
  EXPECT_TRUE(is_name("a-"));
  EXPECT_TRUE(is_name(std::string(63, 'a')));
  for (std::string_view bad :
       {"", "-a", "A", "a_b", "a.b", "../a", "a/b", "a b", "a\n", "\xc3\xa4"})
    EXPECT_FALSE(is_name(bad)) << bad;
  EXPECT_FALSE(is_name(std::string(64, 'a')));
  EXPECT_FALSE(is_name(std::string_view("a\0b", 3)));
}

TEST(Name, ErrorDoesNotRepeatControlCharacters) {
  EXPECT_EQ(check_name("LUN name", "a\x1b[2J").error().text.find('\x1b'), std::string::npos);
}

TEST(Size, UnitsArePowersOf1024) {
  EXPECT_EQ(*parse_size("4096"), 4096U);
  EXPECT_EQ(*parse_size("10G"), 10ULL << 30);
  EXPECT_EQ(*parse_size("1k"), 1024U);
  EXPECT_EQ(*parse_size("2P"), 2ULL << 50);
  EXPECT_EQ(*parse_size("0"), 0U);
}

TEST(Size, AnythingElseIsRefused) {
  for (std::string_view bad : {"", "G", "-1", "+1", "1.5G", "1GB", " 1", "1 ", "0x10", "1e3",
                               "18446744073709551616", "16384P"})
    EXPECT_FALSE(parse_size(bad)) << bad;
}

TEST(Size, ShortTextIsExact) {
  EXPECT_EQ(size_text(10ULL << 30), "10G");
  EXPECT_EQ(size_text(1536), "1536");
  EXPECT_EQ(size_text(0), "0");
  EXPECT_EQ(size_text(1ULL << 50), "1P");
}

TEST(LunSize, IsAMultipleOfTheBlockSize) {
  EXPECT_TRUE(check_lun_size(1 << 20, 4096));
  EXPECT_TRUE(check_lun_size(512, 512));
  EXPECT_FALSE(check_lun_size(1000, 512));
  EXPECT_FALSE(check_lun_size(512, 4096));
  EXPECT_FALSE(check_lun_size(0, 512));
  EXPECT_FALSE(check_lun_size(1 << 20, 1024));
  EXPECT_FALSE(check_lun_size((1ULL << 62) + 512, 512));
}

TEST(DurationText, HasUnits) {
  EXPECT_EQ(*parse_duration("90"), 90s);
  EXPECT_EQ(*parse_duration("90s"), 90s);
  EXPECT_EQ(*parse_duration("10m"), 10min);
  EXPECT_EQ(*parse_duration("2h"), 2h);
  EXPECT_EQ(*parse_duration("1d"), 24h);
  EXPECT_EQ(*parse_duration("500ms"), 500ms);
  for (std::string_view bad : {"", "s", "-1s", "1.5s", "1 s", "99999999999999d", "1x"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(HostPortText, IsSplit) {
  auto check = [](std::string_view text, std::string_view host, uint16_t port) {
    Result<HostPort> result = parse_host_port(text, 7443);
    ASSERT_TRUE(result) << text;
    EXPECT_EQ(result->host, host) << text;
    EXPECT_EQ(result->port, port) << text;
  };
  check("10.0.0.2", "10.0.0.2", 7443);
  check("10.0.0.2:1", "10.0.0.2", 1);
  check("[::]:7443", "::", 7443);
  check("[fd00::2]", "fd00::2", 7443);
  check("fd00::2", "fd00::2", 7443);
  check("[fe80::1%eth0]:9", "fe80::1%eth0", 9);
  check("nas-2.example.org:9", "nas-2.example.org", 9);
}

TEST(HostPortText, NonsenseIsRefused) {
  for (std::string_view bad : {"", ":1", "[::", "[::]x", "[::]:", "[1.2.3.4]:1", "a b", "a:b",
                               "a:65536", "-a", "a/b", "[fe80::1%]:1", "1.2.3.4:-1", "a\n"})
    EXPECT_FALSE(parse_host_port(bad, 1)) << bad;
}

TEST(HostPortText, BracketsStandWhereNeeded) {
  EXPECT_EQ(host_port_text("fd00::2", 1), "[fd00::2]:1");
  EXPECT_EQ(host_port_text("nas2", 1), "nas2:1");
}

TEST(Printable, KeepsTextAndDropsTheRest) {
  EXPECT_EQ(printable("plain"), "plain");
  EXPECT_EQ(printable("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(printable("a\x1b[0m\n\x7f"), "a?[0m??");
  EXPECT_EQ(printable("\xff\xc3"), "??");
  EXPECT_EQ(printable("\xc2\x9b"
                      "x"),
            "?x");                              // CSI as one C1 character
  EXPECT_EQ(printable("\xe0\x80\x80"), "???");  // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "???");  // surrogate
  EXPECT_EQ(printable("abcdef", 3), "abc...");
}

TEST(Printable, DropsWhatShowsNothingOrTurnsTheTextAround) {
  EXPECT_EQ(printable("a\u202eb"), "a?b");  // right-to-left override
  EXPECT_EQ(printable("a\u200bb"), "a?b");  // zero width space
  EXPECT_EQ(printable("a\u2028b"), "a?b");  // line separator
  EXPECT_EQ(printable("a\u2066b"), "a?b");  // isolate
  EXPECT_EQ(printable("a\u00adb"), "a?b");  // soft hyphen
  EXPECT_EQ(printable("\ufeff"), "?");      // byte order mark
  EXPECT_EQ(printable("\u2026\u20ac"), "\u2026\u20ac");
}

TEST(InterfaceNames, AreThoseThatTheKernelTakes) {
  for (const char* name : {"eth0", "enp3s0f1np1", "bond0.12", "br-lan", "wg_0", "012345678901234"})
    EXPECT_TRUE(check_interface_name("interface", name)) << name;
  for (const char* name : {"", ".", "..", "../eth0", "eth0:1", "eth 0", "eth0\n", "\x1b[2J",
                           "\u00e9th0", "0123456789012345"})
    EXPECT_FALSE(check_interface_name("interface", name)) << name;
}

}  // namespace
}  // namespace vjbod::config
