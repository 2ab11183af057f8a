// SPDX-License-Identifier: Apache-2.0
#include "initiator/frontend/nbd_handshake.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/support/memory_block_device.h"

namespace vjbod::initiator::nbd {
namespace {

using Phase = Handshake::Phase;

constexpr uint32_t all_flags = 3;

struct Reply {
  Option option{};
  OptionReply type{};
  std::string data;
};

std::string number(uint64_t value, size_t width) {
  std::string text(width, '\0');
  store_big_endian(reinterpret_cast<std::byte*>(text.data()), value, width);
  return text;
}
std::string name_and_infos(std::string_view name, const std::vector<Info>& infos) {
  std::string data = number(name.size(), 4) + std::string(name) + number(infos.size(), 2);
  for (Info info : infos) data += number(static_cast<uint64_t>(info), 2);
  return data;
}
std::string meta_query(std::string_view name, const std::vector<std::string>& queries) {
  std::string data = number(name.size(), 4) + std::string(name) + number(queries.size(), 4);
  for (const std::string& query : queries) data += number(query.size(), 4) + query;
  return data;
}

// A client that talks to the handshake and reads its answers.
class NbdHandshake : public testing::Test {
 protected:
  void SetUp() override {
    handshake.set_geometry(test::full_geometry(1 << 20));
    output();
  }

  void feed(std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t taken = handshake.consume(as_bytes(bytes));
      if (taken == 0) break;
      bytes.remove_prefix(taken);
    }
    left = bytes;
  }
  void flags(uint32_t value) { feed(number(value, 4)); }
  void option(Option option, std::string_view data = {}) {
    const auto header = encode_option_header({option, static_cast<uint32_t>(data.size())});
    feed(std::string(as_text(header)) + std::string(data));
  }
  std::string output() {
    std::string text(as_text(handshake.output()));
    handshake.output().clear();
    return text;
  }
  std::vector<Reply> replies() {
    const std::string all = output();
    std::vector<Reply> out;
    ByteReader reader(as_bytes(all));
    while (reader.remaining() > 0) {
      const ConstBytes header = reader.bytes(option_reply_header_bytes);
      if (!reader.ok()) break;
      const auto decoded = decode_option_reply_header(header.first<option_reply_header_bytes>());
      EXPECT_TRUE(decoded);
      out.push_back({decoded->option, decoded->type,
                     std::string(as_text(reader.bytes(decoded->length_bytes)))});
    }
    EXPECT_TRUE(reader.ok());
    return out;
  }
  OptionReply only_reply() {
    const auto all = replies();
    EXPECT_EQ(all.size(), 1u);
    return all.at(0).type;
  }

  Handshake handshake{{"disk0", "a test disk"}};
  std::string left;
};

TEST_F(NbdHandshake, GoTellsSizeFlagsAndLimitsAndEntersTransmission) {
  flags(all_flags);
  option(Option::structured_reply);
  EXPECT_EQ(only_reply(), OptionReply::ack);
  option(Option::go, name_and_infos("disk0", {Info::name, Info::description}));
  const auto all = replies();
  ASSERT_EQ(all.size(), 5u);
  const uint16_t expected = transmission_flag::has_flags | transmission_flag::send_flush |
                            transmission_flag::send_fua | transmission_flag::send_trim |
                            transmission_flag::send_write_zeroes | transmission_flag::send_df |
                            transmission_flag::can_multi_conn | transmission_flag::send_cache |
                            transmission_flag::send_fast_zero;
  EXPECT_EQ(all[0].data, number(0, 2) + number(1 << 20, 8) + number(expected, 2));
  EXPECT_EQ(all[1].data, number(1, 2) + "disk0");
  EXPECT_EQ(all[2].data, number(2, 2) + "a test disk");
  EXPECT_EQ(all[3].data, number(3, 2) + number(512, 4) + number(4096, 4) + number(32 << 20, 4));
  EXPECT_EQ(all[4].type, OptionReply::ack);
  EXPECT_EQ(handshake.phase(), Phase::transmission);
  EXPECT_TRUE(handshake.structured_replies());
}

TEST_F(NbdHandshake, InfoAnswersLikeGoButGoesOnHaggling) {
  flags(all_flags);
  option(Option::info, name_and_infos("", {}));
  EXPECT_EQ(replies().back().type, OptionReply::ack);
  EXPECT_EQ(handshake.phase(), Phase::options);
}

TEST_F(NbdHandshake, ExportNameGetsTheShortAnswerWithoutZeroes) {
  flags(all_flags);
  option(Option::export_name, "disk0");
  EXPECT_EQ(output().size(), 10u);
  EXPECT_EQ(handshake.phase(), Phase::transmission);
}

TEST_F(NbdHandshake, ExportNameGetsZeroesWhenTheClientWantsThem) {
  flags(1);
  option(Option::export_name, "");
  EXPECT_EQ(output().size(), 134u);
}

TEST_F(NbdHandshake, UnknownExportNameCloses) {
  flags(all_flags);
  option(Option::export_name, "other");
  EXPECT_EQ(handshake.phase(), Phase::closed);
  EXPECT_EQ(output(), "");
  EXPECT_NE(handshake.close_reason(), "");
}

TEST_F(NbdHandshake, UnknownExportInGoIsAnErrorAndTheClientMayTryAgain) {
  flags(all_flags);
  option(Option::go, name_and_infos("other", {}));
  EXPECT_EQ(only_reply(), OptionReply::error_unknown);
  option(Option::go, name_and_infos("disk0", {}));
  EXPECT_EQ(handshake.phase(), Phase::transmission);
}

TEST_F(NbdHandshake, ListNamesTheDisk) {
  flags(all_flags);
  option(Option::list);
  const auto all = replies();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].type, OptionReply::server);
  EXPECT_EQ(all[0].data, number(5, 4) + "disk0" + "a test disk");
  EXPECT_EQ(all[1].type, OptionReply::ack);
}

TEST_F(NbdHandshake, ListWithDataIsInvalid) {
  flags(all_flags);
  option(Option::list, "x");
  EXPECT_EQ(only_reply(), OptionReply::error_invalid);
}

TEST_F(NbdHandshake, AbortIsAcknowledgedThenClosed) {
  flags(all_flags);
  option(Option::abort);
  EXPECT_EQ(only_reply(), OptionReply::ack);
  EXPECT_EQ(handshake.phase(), Phase::closed);
  EXPECT_EQ(handshake.close_reason(), "");
}

TEST_F(NbdHandshake, TlsIsRefusedByPolicy) {
  flags(all_flags);
  option(Option::starttls);
  EXPECT_EQ(only_reply(), OptionReply::error_policy);
}

TEST_F(NbdHandshake, UnknownOptionsAreUnsupported) {
  flags(all_flags);
  option(static_cast<Option>(12));
  EXPECT_EQ(only_reply(), OptionReply::error_unsupported);
  option(static_cast<Option>(0xffffffff), "data");
  EXPECT_EQ(only_reply(), OptionReply::error_unsupported);
}

TEST_F(NbdHandshake, MetaContextsAreNoneButProperlySo) {
  flags(all_flags);
  option(Option::list_meta_context, meta_query("disk0", {}));
  EXPECT_EQ(only_reply(), OptionReply::error_invalid) << "structured replies come first";
  option(Option::structured_reply);
  only_reply();
  option(Option::list_meta_context, meta_query("disk0", {}));
  EXPECT_EQ(only_reply(), OptionReply::ack);
  option(Option::set_meta_context, meta_query("", {"base:allocation", "x:y"}));
  EXPECT_EQ(only_reply(), OptionReply::ack);
  option(Option::set_meta_context, meta_query("other", {"base:allocation"}));
  EXPECT_EQ(only_reply(), OptionReply::error_unknown);
}

TEST_F(NbdHandshake, LengthsInsideAnOptionMustFitIt) {
  flags(all_flags);
  option(Option::structured_reply);
  only_reply();
  for (Option kind : {Option::info, Option::go}) {
    option(kind, number(0xffffffff, 4) + "disk0");
    EXPECT_EQ(only_reply(), OptionReply::error_invalid);
    option(kind, name_and_infos("disk0", {Info::name}) + "x");
    EXPECT_EQ(only_reply(), OptionReply::error_invalid);
    option(kind, number(5, 4) + "disk0" + number(2, 2) + number(0, 2));
    EXPECT_EQ(only_reply(), OptionReply::error_invalid);
  }
  option(Option::set_meta_context, number(0, 4) + number(0xffffffff, 4));
  EXPECT_EQ(only_reply(), OptionReply::error_invalid);
  option(Option::structured_reply, "x");
  EXPECT_EQ(only_reply(), OptionReply::error_invalid);
  EXPECT_EQ(handshake.phase(), Phase::options);
}

TEST_F(NbdHandshake, EveryTruncatedGoIsInvalidAndHarmless) {
  flags(all_flags);
  const std::string whole = name_and_infos("disk0", {Info::name, Info::block_size});
  for (size_t size = 0; size < whole.size(); ++size) {
    option(Option::go, whole.substr(0, size));
    EXPECT_EQ(only_reply(), OptionReply::error_invalid) << size;
  }
}

TEST_F(NbdHandshake, LongestOptionIsReadAndALongerOneSkipped) {
  flags(all_flags);
  option(Option::list, std::string(Handshake::option_bytes_max, 'x'));
  EXPECT_EQ(only_reply(), OptionReply::error_invalid);
  option(Option::list, std::string(Handshake::option_bytes_max + 1, 'x'));
  EXPECT_EQ(only_reply(), OptionReply::error_too_big);
  option(Option::list);
  EXPECT_EQ(replies().size(), 2u) << "the next option is understood again";
}

TEST_F(NbdHandshake, TooLongExportNameCloses) {
  flags(all_flags);
  option(Option::export_name, std::string(Handshake::option_bytes_max + 1, 'x'));
  EXPECT_EQ(handshake.phase(), Phase::closed);
}

TEST_F(NbdHandshake, EndlessHagglingCloses) {
  flags(all_flags);
  for (int i = 0; i < Handshake::options_max; ++i) option(Option::list);
  EXPECT_EQ(handshake.phase(), Phase::options);
  option(Option::list);
  EXPECT_EQ(handshake.phase(), Phase::closed);
}

TEST_F(NbdHandshake, UnknownClientFlagsClose) {
  flags(4);
  EXPECT_EQ(handshake.phase(), Phase::closed);
}

TEST_F(NbdHandshake, ClientWithoutFixedNewstyleMayOnlyNameTheExport) {
  flags(0);
  option(Option::list);
  EXPECT_EQ(handshake.phase(), Phase::closed);
}

TEST_F(NbdHandshake, WrongOptionMagicCloses) {
  flags(all_flags);
  feed(std::string(option_header_bytes, 'x'));
  EXPECT_EQ(handshake.phase(), Phase::closed);
}

TEST_F(NbdHandshake, BytesMayComeOneByOne) {
  std::string all = number(all_flags, 4);
  all += as_text(encode_option_header({Option::go, 11}));
  all += name_and_infos("disk0", {});
  std::string waiting;
  for (const char c : all) {
    waiting += c;
    waiting.erase(0, handshake.consume(as_bytes(waiting)));
  }
  EXPECT_EQ(handshake.phase(), Phase::transmission);
  EXPECT_EQ(waiting, "");
}

TEST_F(NbdHandshake, RequestsBehindGoAreLeftAlone) {
  flags(all_flags);
  option(Option::go, name_and_infos("", {}));
  feed("request");
  EXPECT_EQ(left, "request");
}

TEST_F(NbdHandshake, SizeThatChangedBeforeTheChoiceIsTheOneTold) {
  flags(all_flags);
  handshake.set_geometry(test::full_geometry(2 << 20));
  option(Option::go, name_and_infos("", {}));
  EXPECT_EQ(replies()[0].data.substr(2, 8), number(2 << 20, 8));
  handshake.set_geometry(test::full_geometry(4 << 20));
  EXPECT_EQ(handshake.geometry().size_bytes, 2u << 20) << "the client was told so";
}

class NbdHandshakeOfUnknownDisk : public NbdHandshake {
 protected:
  void SetUp() override {
    output();
    flags(all_flags);
  }
};

TEST_F(NbdHandshakeOfUnknownDisk, GoWaitsForTheGeometry) {
  option(Option::go, name_and_infos("", {}));
  EXPECT_EQ(handshake.phase(), Phase::waiting_for_geometry);
  EXPECT_EQ(output(), "");
  handshake.set_geometry(test::full_geometry(1 << 20));
  EXPECT_EQ(handshake.phase(), Phase::transmission);
  EXPECT_EQ(replies().back().type, OptionReply::ack);
}

TEST_F(NbdHandshakeOfUnknownDisk, ListNeedsNoGeometry) {
  option(Option::list);
  EXPECT_EQ(replies().back().type, OptionReply::ack);
}

TEST_F(NbdHandshakeOfUnknownDisk, WaitingEndsWithAnErrorThatSaysWhy) {
  option(Option::info, name_and_infos("", {}));
  handshake.refuse_waiting(OptionReply::error_unknown, "not reached");
  const auto all = replies();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].type, OptionReply::error_unknown);
  EXPECT_EQ(all[0].data, "not reached");
  EXPECT_EQ(handshake.phase(), Phase::options);
}

TEST_F(NbdHandshakeOfUnknownDisk, ExportNameHasNoErrorReplySoItCloses) {
  option(Option::export_name, "");
  handshake.refuse_waiting(OptionReply::error_unknown, "not reached");
  EXPECT_EQ(handshake.phase(), Phase::closed);
  EXPECT_EQ(output(), "");
}

}  // namespace
}  // namespace vjbod::initiator::nbd
