// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/text.h"

#include <gtest/gtest.h>

#include "common/iscsi/errc.h"

namespace vjbod::iscsi {
namespace {

using std::string_literals::operator""s;

Result<std::vector<TextPair>> split(const std::string& text) {
  return split_text(as_bytes(std::string_view(text)));
}
std::error_code code_of(const std::string& text) {
  const auto pairs = split(text);
  return pairs ? std::error_code() : pairs.error().code;
}

TEST(Text, SplitsPairsAtTheFirstEqualsSign) {
  const std::string text = "InitiatorName=iqn.a\0CHAP_C=0bQUI=\0Empty=\0"s;
  const auto pairs = split(text);
  ASSERT_TRUE(pairs) << pairs.error().text;
  ASSERT_EQ(pairs->size(), 3U);
  EXPECT_EQ((*pairs)[0].key, "InitiatorName");
  EXPECT_EQ((*pairs)[0].value, "iqn.a");
  EXPECT_EQ((*pairs)[1].value, "0bQUI=");
  EXPECT_EQ((*pairs)[2].value, "");
}

TEST(Text, TakesAnEmptyTextAndSeveralNulsBetweenPairs) {
  EXPECT_EQ(split("")->size(), 0U);
  EXPECT_EQ(split("\0A=1\0\0\0B=2\0\0"s)->size(), 2U);
}

TEST(Text, RefusesWhatIsNotKeyEqualsValue) {
  EXPECT_EQ(code_of("NoValue\0"s), Errc::bad_text);
  EXPECT_EQ(code_of("=value\0"s), Errc::bad_text);
  EXPECT_EQ(code_of("A=1"), Errc::bad_text) << "no NUL at the end";
  EXPECT_EQ(code_of("A B=1\0"s), Errc::bad_text);
  EXPECT_EQ(code_of("A\n=1\0"s), Errc::bad_text);
  EXPECT_EQ(code_of("\xc3\x84=1\0"s), Errc::bad_text);
}

TEST(Text, LimitsAKeyTo63Bytes) {
  EXPECT_TRUE(split(std::string(63, 'K') + "=1\0"s));
  EXPECT_EQ(code_of(std::string(64, 'K') + "=1\0"s), Errc::bad_text);
}

TEST(Text, LimitsAValueTo8192Bytes) {
  EXPECT_TRUE(split("K=" + std::string(8192, 'v') + "\0"s));
  EXPECT_EQ(code_of("K=" + std::string(8193, 'v') + "\0"s), Errc::text_too_long);
}

TEST(Text, LimitsTheNumberOfPairs) {
  std::string text;
  for (size_t i = 0; i < text_pairs_max; ++i) text += "K" + std::to_string(i) + "=\0"s;
  EXPECT_EQ(split(text)->size(), text_pairs_max);
  EXPECT_EQ(code_of(text + "More=\0"s), Errc::text_too_long);
}

TEST(Text, LimitsTheWholeText) {
  std::string text;
  for (int i = 0; i < 7; ++i) text += std::to_string(i) + "=" + std::string(8192, 'v') + "\0"s;
  text.append(text_bytes_max - text.size(), '\0');
  EXPECT_TRUE(split(text));
  EXPECT_EQ(code_of(text + "\0"s), Errc::text_too_long);
}

TEST(Text, DetectsAKeyThatComesTwice) {
  const std::string text = "A=1\0B=1\0A=1\0"s;
  EXPECT_EQ(code_of(text), Errc::bad_text);
  EXPECT_EQ(split_text(as_bytes(std::string_view(text)), DuplicateKeys::allowed)->size(), 3U);
}

TEST(Text, ErrorsHoldNoControlCharactersOfThePeer) {
  const auto pairs = split("a\x1b[31m\0"s);
  ASSERT_FALSE(pairs);
  EXPECT_EQ(pairs.error().text.find('\x1b'), std::string::npos);
  EXPECT_NE(pairs.error().text.find("\\x1b"), std::string::npos);
}

TEST(TextAssembler, JoinsPiecesThatCutAPair) {
  TextAssembler assembler;
  ASSERT_TRUE(assembler.add(as_bytes("A=1")));
  ASSERT_TRUE(assembler.add(as_bytes("23\0B=2\0"s)));
  const auto pairs = split_text(assembler.text());
  ASSERT_TRUE(pairs);
  EXPECT_EQ((*pairs)[0].value, "123");
  EXPECT_EQ((*pairs)[1].value, "2");
}

TEST(TextAssembler, StopsAtItsLimit) {
  TextAssembler assembler(10);
  ASSERT_TRUE(assembler.add(as_bytes("0123456")));
  ASSERT_TRUE(assembler.add(as_bytes("789")));
  EXPECT_EQ(assembler.add(as_bytes("x")).error().code, Errc::text_too_long);
  EXPECT_EQ(assembler.text().size(), 10U);
}

TEST(TextBuilder, BuildsWhatSplitTakesApart) {
  TextBuilder builder;
  builder.add("A", "x").add("N", uint64_t{42}).add_boolean("Y", true).add_boolean("Z", false);
  EXPECT_EQ(builder.take(), "A=x\0N=42\0Y=Yes\0Z=No\0"s);
  EXPECT_TRUE(builder.empty());
}

TEST(TextSegmenter, CutsATextToSegments) {
  TextSegmenter segmenter;
  segmenter.append("0123456789");
  EXPECT_TRUE(segmenter.continues(4));
  EXPECT_EQ(segmenter.next(4), "0123");
  EXPECT_EQ(segmenter.next(4), "4567");
  EXPECT_FALSE(segmenter.continues(4));
  EXPECT_EQ(segmenter.next(4), "89");
  EXPECT_TRUE(segmenter.empty());
  EXPECT_EQ(segmenter.next(4), "");
}

TEST(TextValues, BooleansAreYesAndNo) {
  EXPECT_EQ(parse_boolean("Yes"), true);
  EXPECT_EQ(parse_boolean("No"), false);
  for (const char* value : {"", "yes", "NO", "1", "Yes ", "true"}) {
    EXPECT_EQ(parse_boolean(value), std::nullopt) << value;
  }
}

TEST(TextValues, NumbersAreDecimalOrHexadecimal) {
  EXPECT_EQ(parse_number("0"), 0U);
  EXPECT_EQ(parse_number("262144"), 262144U);
  EXPECT_EQ(parse_number("0x40000"), 262144U);
  EXPECT_EQ(parse_number("0XfF"), 255U);
  EXPECT_EQ(parse_number("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(parse_number("0xffffffffffffffff"), UINT64_MAX);
  for (const char* value : {"", "0x", "-1", "+1", " 1", "1 ", "1.0", "01", "0x1g", "0b1",
                            "18446744073709551616", "0x10000000000000000"}) {
    EXPECT_EQ(parse_number(value), std::nullopt) << value;
  }
}

TEST(TextValues, ListsComeApartAtCommas) {
  std::string_view list = "a,,b";
  EXPECT_EQ(next_list_item(list), "a");
  EXPECT_EQ(next_list_item(list), "");
  EXPECT_EQ(next_list_item(list), "b");
  EXPECT_EQ(next_list_item(list), std::nullopt);
  std::string_view trailing = "a,";
  EXPECT_EQ(next_list_item(trailing), "a");
  EXPECT_EQ(next_list_item(trailing), "");
  EXPECT_EQ(next_list_item(trailing), std::nullopt);
}

TEST(TextValues, PrintableCutsLongValues) {
  EXPECT_EQ(printable("a b\\c"), "a b\\x5cc");
  EXPECT_EQ(printable(std::string(65, 'x')), std::string(64, 'x') + "...");
}

}  // namespace
}  // namespace vjbod::iscsi
