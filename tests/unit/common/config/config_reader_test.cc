// SPDX-License-Identifier: Apache-2.0
#include "common/config/config_reader.h"

#include <gtest/gtest.h>

namespace vjbod::config {
namespace {

using namespace std::chrono_literals;

struct Values {
  std::string name;
  uint32_t count = 7;
  bool on = false;
  uint64_t bytes = 0;
  Duration wait = 1s;
  std::vector<std::string> list;
  std::vector<std::string> portals;
  std::string listen;
};

Status read(std::string_view text, Values& values) {
  Result<ConfigReader> reader = ConfigReader::parse(text, "test.toml");
  if (!reader) return fail(reader.error());
  ConfigTable root = reader->root();
  root.text("name", values.name);
  root.number("count", 1, 100, values.count);
  root.flag("on", values.on);
  root.size("bytes", 0, 1 << 20, values.bytes);
  root.duration("wait", 1s, 1h, values.wait);
  root.texts("list", values.list);
  for (ConfigTable& portal : root.tables("portal"))
    portal.text("address", values.portals.emplace_back());
  if (auto control = root.table("control")) control->text("listen", values.listen);
  return reader->finish();
}

std::string error_of(std::string_view text) {
  Values values;
  Status status = read(text, values);
  return status ? "no error" : status.error().text;
}

TEST(ConfigReader, TakesWhatIsThereAndLeavesTheRest) {
  Values values;
  Status status = read(
      "name = \"nas2\"\non = true\nbytes = \"4K\"\nwait = \"2m\"\nlist = [\"a\", \"b\"]\n"
      "[control]\nlisten = \"x\"\n[[portal]]\naddress = \"p\"\n[[portal]]\naddress = \"q\"\n",
      values);
  ASSERT_TRUE(status) << status.error().text;
  EXPECT_EQ(values.name, "nas2");
  EXPECT_EQ(values.count, 7U);
  EXPECT_TRUE(values.on);
  EXPECT_EQ(values.bytes, 4096U);
  EXPECT_EQ(values.wait, 2min);
  EXPECT_EQ(values.list, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(values.portals, (std::vector<std::string>{"p", "q"}));
  EXPECT_EQ(values.listen, "x");
}

TEST(ConfigReader, UnknownKeysAreNamedWithTheirLine) {
  EXPECT_EQ(error_of("name = \"a\"\ncolour = 1\n"), "test.toml:2: colour: unknown key");
  EXPECT_EQ(error_of("[control]\n\nlisen = \"x\"\n"), "test.toml:3: control.lisen: unknown key");
  EXPECT_EQ(error_of("[[portal]]\nadress = \"x\"\n"), "test.toml:2: portal.adress: unknown key");
  EXPECT_EQ(error_of("[nothing]\n"), "test.toml:1: nothing: unknown key");
}

TEST(ConfigReader, WrongTypesAreNamedWithTheirLine) {
  EXPECT_EQ(error_of("\nname = 3\n"),
            "test.toml:2: name: must be a text in quotes, not a whole number");
  EXPECT_EQ(error_of("on = 1"), "test.toml:1: on: must be true or false, not a whole number");
  EXPECT_EQ(error_of("count = \"1\""), "test.toml:1: count: must be a whole number, not a text");
  EXPECT_EQ(error_of("control = 1"),
            "test.toml:1: control: must be a table, [control], not a whole number");
  EXPECT_EQ(error_of("[portal]\n"),
            "test.toml:1: portal: must be a list of tables, [[portal]], not a table");
  EXPECT_EQ(error_of("list = [1]"),
            "test.toml:1: list: must be an array of texts, not a whole number");
}

TEST(ConfigReader, ValuesOutOfRangeAreRefused) {
  EXPECT_EQ(error_of("count = 0"), "test.toml:1: count: is 0, allowed are 1 to 100");
  EXPECT_EQ(error_of("count = -1"), "test.toml:1: count: is -1, allowed are 1 to 100");
  EXPECT_EQ(error_of("count = 101"), "test.toml:1: count: is 101, allowed are 1 to 100");
  EXPECT_EQ(error_of("bytes = \"2M\""), "test.toml:1: bytes: is 2M, allowed are 0 to 1M");
  EXPECT_EQ(error_of("wait = \"2h\""), "test.toml:1: wait: is 2h, allowed are 1 to 3600 seconds");
}

TEST(ConfigReader, BrokenFilesAreNamedWithTheirLine) {
  EXPECT_TRUE(error_of("name = \"a\"\nname = \"b\"\n").starts_with("test.toml:2: "));
  EXPECT_TRUE(error_of("a = \n").starts_with("test.toml:1: "));
}

TEST(ConfigReader, MissingFileIsNamed) {
  Result<ConfigReader> reader = ConfigReader::open("/nonexistent/target.toml");
  ASSERT_FALSE(reader);
  EXPECT_NE(reader.error().text.find("/nonexistent/target.toml"), std::string::npos);
}

}  // namespace
}  // namespace vjbod::config
