// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/pdu_codec.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/random.h"
#include "common/iscsi/pdu_rules.h"

namespace vjbod::iscsi {
namespace {

using Header = std::array<std::byte, bhs_bytes>;

constexpr uint32_t data_length = 0x0a0b0c;
constexpr LunField lun = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                          std::byte{5}, std::byte{6}, std::byte{7}, std::byte{8}};
constexpr Isid isid = {std::byte{0x80}, std::byte{0x91}, std::byte{0xa2},
                       std::byte{0xb3}, std::byte{0xc4}, std::byte{0xd5}};
constexpr uint32_t itt = 0x11121314, ttt = 0x21222324;
constexpr SerialNumber sn3{0x31323334}, sn4{0x41424344}, sn5{0x51525354};

Header encoded(const Pdu& pdu, uint32_t data_segment_length = data_length, uint8_t ahs_words = 0) {
  Header out;
  out.fill(std::byte{0xee});
  encode_bhs(pdu, data_segment_length, ahs_words, out);
  return out;
}

// Twelve words, as the RFC draws them.
std::string hex(const Header& header) {
  std::string out;
  for (size_t i = 0; i < header.size(); ++i) {
    if (i > 0 && i % 4 == 0) out += ' ';
    out += fmt::format("{:02x}", std::to_integer<unsigned>(header[i]));
  }
  return out;
}

Header header_of(std::string_view text) {
  Header out{};
  size_t digits = 0;
  for (char c : text) {
    if (c == ' ') continue;
    const auto value = static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    out[digits / 2] = out[digits / 2] << 4 | static_cast<std::byte>(value);
    ++digits;
  }
  EXPECT_EQ(digits, bhs_bytes * 2);
  return out;
}

std::string encoded_again(const Header& header) {
  auto pdu = decode_bhs(header);
  if (!pdu) return pdu.error().text;
  return hex(encoded(*pdu, bhs_data_segment_length(header),
                     static_cast<uint8_t>(bhs_total_ahs_bytes(header) / 4)));
}

// Each PDU with a different value in every field; its bytes by the RFC's diagram; and which bits of
// the header mean anything (flags that are always 1 included).
struct Golden {
  Pdu pdu;
  const char* bytes;
  const char* meaningful;
};

const std::vector<Golden>& golden() {
  static const std::vector<Golden> all = {
      {NopOut{.immediate = true,
              .lun = lun,
              .itt = itt,
              .ttt = ttt,
              .cmd_sn = sn3,
              .exp_stat_sn = sn4},
       "40800000 000a0b0c 01020304 05060708 11121314 21222324 31323334 41424344 "
       "00000000 00000000 00000000 00000000",
       "40800000 ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff "
       "00000000 00000000 00000000 00000000"},
      {ScsiCommand{.immediate = true,
                   .final = true,
                   .read = false,
                   .write = true,
                   .attribute = TaskAttribute::head_of_queue,
                   .lun = lun,
                   .itt = itt,
                   .expected_data_transfer_length = 0x00100000,
                   .cmd_sn = sn3,
                   .exp_stat_sn = sn4,
                   .cdb = {std::byte{0x8a}, std::byte{0x08}, std::byte{0x02}, std::byte{0x03},
                           std::byte{0x04}, std::byte{0x05}, std::byte{0x06}, std::byte{0x07},
                           std::byte{0x08}, std::byte{0x09}, std::byte{0x0a}, std::byte{0x0b},
                           std::byte{0x0c}, std::byte{0x0d}, std::byte{0x0e}, std::byte{0x0f}}},
       "41a30000 000a0b0c 01020304 05060708 11121314 00100000 31323334 41424344 "
       "8a080203 04050607 08090a0b 0c0d0e0f",
       "41e70000 ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff "
       "ffffffff ffffffff ffffffff ffffffff"},
      {TaskManagementRequest{.immediate = true,
                             .function = TaskManagementFunction::logical_unit_reset,
                             .lun = lun,
                             .itt = itt,
                             .referenced_task_tag = ttt,
                             .cmd_sn = sn3,
                             .exp_stat_sn = sn4,
                             .ref_cmd_sn = sn5,
                             .exp_data_sn = 0x61626364},
       "42850000 000a0b0c 01020304 05060708 11121314 21222324 31323334 41424344 "
       "51525354 61626364 00000000 00000000",
       "42ff0000 ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff "
       "ffffffff ffffffff 00000000 00000000"},
      {LoginRequest{.transit = true,
                    .continues = false,
                    .current_stage = Stage::operational,
                    .next_stage = Stage::full_feature,
                    .version_max = 2,
                    .version_min = 1,
                    .isid = isid,
                    .tsih = 0xe6f7,
                    .itt = itt,
                    .cid = 0x2122,
                    .cmd_sn = sn3,
                    .exp_stat_sn = sn4},
       "43870201 000a0b0c 8091a2b3 c4d5e6f7 11121314 21220000 31323334 41424344 "
       "00000000 00000000 00000000 00000000",
       "43cfffff ffffffff ffffffff ffffffff ffffffff ffff0000 ffffffff ffffffff "
       "00000000 00000000 00000000 00000000"},
      {TextRequest{.immediate = true,
                   .final = false,
                   .continues = true,
                   .lun = lun,
                   .itt = itt,
                   .ttt = ttt,
                   .cmd_sn = sn3,
                   .exp_stat_sn = sn4},
       "44400000 000a0b0c 01020304 05060708 11121314 21222324 31323334 41424344 "
       "00000000 00000000 00000000 00000000",
       "44c00000 ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff "
       "00000000 00000000 00000000 00000000"},
      {DataOut{.final = true,
               .lun = lun,
               .itt = itt,
               .ttt = ttt,
               .exp_stat_sn = sn4,
               .data_sn = 0x71727374,
               .buffer_offset = 0x81828384},
       "05800000 000a0b0c 01020304 05060708 11121314 21222324 00000000 41424344 "
       "00000000 71727374 81828384 00000000",
       "05800000 ffffffff ffffffff ffffffff ffffffff ffffffff 00000000 ffffffff "
       "00000000 ffffffff ffffffff 00000000"},
      {LogoutRequest{.immediate = true,
                     .reason = LogoutReason::close_connection,
                     .itt = itt,
                     .cid = 0x2122,
                     .cmd_sn = sn3,
                     .exp_stat_sn = sn4},
       "46810000 000a0b0c 00000000 00000000 11121314 21220000 31323334 41424344 "
       "00000000 00000000 00000000 00000000",
       "46ff0000 ffffffff 00000000 00000000 ffffffff ffff0000 ffffffff ffffffff "
       "00000000 00000000 00000000 00000000"},
      {SnackRequest{.type = 3,
                    .lun = lun,
                    .itt = itt,
                    .ttt = ttt,
                    .exp_stat_sn = sn4,
                    .begin_run = 0x71727374,
                    .run_length = 0x81828384},
       "10830000 000a0b0c 01020304 05060708 11121314 21222324 00000000 41424344 "
       "00000000 00000000 71727374 81828384",
       "108f0000 ffffffff ffffffff ffffffff ffffffff ffffffff 00000000 ffffffff "
       "00000000 00000000 ffffffff ffffffff"},
      {NopIn{.lun = lun,
             .itt = itt,
             .ttt = ttt,
             .stat_sn = sn3,
             .exp_cmd_sn = sn4,
             .max_cmd_sn = sn5},
       "20800000 000a0b0c 01020304 05060708 11121314 21222324 31323334 41424344 "
       "51525354 00000000 00000000 00000000",
       "20800000 ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff "
       "ffffffff 00000000 00000000 00000000"},
      {ScsiResponse{.bidirectional_read_overflow = true,
                    .underflow = true,
                    .response = 1,
                    .status = 2,
                    .itt = itt,
                    .snack_tag = ttt,
                    .stat_sn = sn3,
                    .exp_cmd_sn = sn4,
                    .max_cmd_sn = sn5,
                    .exp_data_sn = 0x61626364,
                    .bidirectional_read_residual_count = 0x71727374,
                    .residual_count = 0x81828384},
       "21920102 000a0b0c 00000000 00000000 11121314 21222324 31323334 41424344 "
       "51525354 61626364 71727374 81828384",
       "219effff ffffffff 00000000 00000000 ffffffff ffffffff ffffffff ffffffff "
       "ffffffff ffffffff ffffffff ffffffff"},
      {TaskManagementResponse{.result = TaskManagementResult::not_supported,
                              .itt = itt,
                              .stat_sn = sn3,
                              .exp_cmd_sn = sn4,
                              .max_cmd_sn = sn5},
       "22800500 000a0b0c 00000000 00000000 11121314 00000000 31323334 41424344 "
       "51525354 00000000 00000000 00000000",
       "2280ff00 ffffffff 00000000 00000000 ffffffff 00000000 ffffffff ffffffff "
       "ffffffff 00000000 00000000 00000000"},
      {LoginResponse{.transit = true,
                     .continues = false,
                     .current_stage = Stage::security,
                     .next_stage = Stage::operational,
                     .version_max = 2,
                     .version_active = 1,
                     .isid = isid,
                     .tsih = 0xe6f7,
                     .itt = itt,
                     .stat_sn = sn3,
                     .exp_cmd_sn = sn4,
                     .max_cmd_sn = sn5,
                     .status_class = 2,
                     .status_detail = 7},
       "23810201 000a0b0c 8091a2b3 c4d5e6f7 11121314 00000000 31323334 41424344 "
       "51525354 02070000 00000000 00000000",
       "23cfffff ffffffff ffffffff ffffffff ffffffff 00000000 ffffffff ffffffff "
       "ffffffff ffff0000 00000000 00000000"},
      {TextResponse{.final = true,
                    .continues = false,
                    .lun = lun,
                    .itt = itt,
                    .ttt = ttt,
                    .stat_sn = sn3,
                    .exp_cmd_sn = sn4,
                    .max_cmd_sn = sn5},
       "24800000 000a0b0c 01020304 05060708 11121314 21222324 31323334 41424344 "
       "51525354 00000000 00000000 00000000",
       "24c00000 ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff "
       "ffffffff 00000000 00000000 00000000"},
      {DataIn{.final = true,
              .acknowledge = false,
              .overflow = true,
              .has_status = true,
              .status = 8,
              .lun = lun,
              .itt = itt,
              .ttt = ttt,
              .stat_sn = sn3,
              .exp_cmd_sn = sn4,
              .max_cmd_sn = sn5,
              .data_sn = 0x61626364,
              .buffer_offset = 0x71727374,
              .residual_count = 0x81828384},
       "25850008 000a0b0c 01020304 05060708 11121314 21222324 31323334 41424344 "
       "51525354 61626364 71727374 81828384",
       "25c700ff ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff "
       "ffffffff ffffffff ffffffff ffffffff"},
      {LogoutResponse{.result = LogoutResult::cleanup_failed,
                      .itt = itt,
                      .stat_sn = sn3,
                      .exp_cmd_sn = sn4,
                      .max_cmd_sn = sn5,
                      .time2wait_s = 0x7172,
                      .time2retain_s = 0x7374},
       "26800300 000a0b0c 00000000 00000000 11121314 00000000 31323334 41424344 "
       "51525354 00000000 71727374 00000000",
       "2680ff00 ffffffff 00000000 00000000 ffffffff 00000000 ffffffff ffffffff "
       "ffffffff 00000000 ffffffff 00000000"},
      {R2t{.lun = lun,
           .itt = itt,
           .ttt = ttt,
           .stat_sn = sn3,
           .exp_cmd_sn = sn4,
           .max_cmd_sn = sn5,
           .r2t_sn = 0x61626364,
           .buffer_offset = 0x71727374,
           .desired_data_transfer_length = 0x81828384},
       "31800000 000a0b0c 01020304 05060708 11121314 21222324 31323334 41424344 "
       "51525354 61626364 71727374 81828384",
       "31800000 ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff "
       "ffffffff ffffffff ffffffff ffffffff"},
      {AsyncMessage{.lun = lun,
                    .stat_sn = sn3,
                    .exp_cmd_sn = sn4,
                    .max_cmd_sn = sn5,
                    .event = AsyncEvent::session_dropped,
                    .vendor_code = 0x62,
                    .parameter1 = 0x6364,
                    .parameter2 = 0x7172,
                    .parameter3 = 0x7374},
       "32800000 000a0b0c 01020304 05060708 ffffffff 00000000 31323334 41424344 "
       "51525354 03626364 71727374 00000000",
       "32800000 ffffffff ffffffff ffffffff ffffffff 00000000 ffffffff ffffffff "
       "ffffffff ffffffff ffffffff 00000000"},
      {Reject{.reason = RejectReason::invalid_pdu_field,
              .stat_sn = sn3,
              .exp_cmd_sn = sn4,
              .max_cmd_sn = sn5,
              .data_sn = 0x61626364},
       "3f800900 000a0b0c 00000000 00000000 ffffffff 00000000 31323334 41424344 "
       "51525354 61626364 00000000 00000000",
       "3f80ff00 ffffffff 00000000 00000000 ffffffff 00000000 ffffffff ffffffff "
       "ffffffff ffffffff 00000000 00000000"},
  };
  return all;
}

TEST(PduCodec, EveryPduHasAGoldenHeader) {
  ASSERT_EQ(golden().size(), std::variant_size_v<Pdu>);
  for (size_t i = 0; i < golden().size(); ++i) EXPECT_EQ(golden()[i].pdu.index(), i);
}

TEST(PduCodec, EncodesTheRfcsBytes) {
  for (const Golden& g : golden()) {
    EXPECT_EQ(hex(encoded(g.pdu)), g.bytes) << name_of(opcode_of(g.pdu));
  }
}

TEST(PduCodec, DecodesTheRfcsBytes) {
  for (const Golden& g : golden()) {
    auto pdu = decode_bhs(header_of(g.bytes));
    ASSERT_TRUE(pdu);
    EXPECT_EQ(pdu->index(), g.pdu.index());
    EXPECT_EQ(hex(encoded(*pdu)), g.bytes) << name_of(opcode_of(g.pdu));
  }
}

TEST(PduCodec, KeepsEveryMeaningfulBitAndNoOther) {
  for (const Golden& g : golden()) {
    Header ones;
    ones.fill(std::byte{0xff});
    ones[0] = header_of(g.bytes)[0];
    EXPECT_EQ(encoded_again(ones), g.meaningful) << name_of(opcode_of(g.pdu));
  }
}

TEST(PduCodec, ADataInWithoutStatusHasNone) {
  Header ones;
  ones.fill(std::byte{0xff});
  ones[0] = std::byte{0x25};
  ones[1] = std::byte{0xfe};  // S is 0
  EXPECT_EQ(encoded_again(ones),
            "25c00000 ffffffff ffffffff ffffffff ffffffff ffffffff 00000000 ffffffff "
            "ffffffff ffffffff ffffffff 00000000");
}

TEST(PduCodec, ALoginWithoutTransitHasNoNextStage) {
  for (unsigned opcode : {0x43U, 0x23U}) {
    Header header{};
    header[0] = static_cast<std::byte>(opcode);
    header[1] = std::byte{0x07};  // CSG 1, NSG 3
    EXPECT_EQ(encoded_again(header).substr(0, 4), fmt::format("{:02x}04", opcode));
  }
}

TEST(PduCodec, ATagInAnAsynchronousMessageOrARejectIsIgnored) {
  for (const Pdu& pdu : {Pdu(AsyncMessage{}), Pdu(Reject{})}) {
    Header header = encoded(pdu, 0);
    const std::string sent = hex(header);
    header[16] = std::byte{0};
    EXPECT_EQ(encoded_again(header), sent);
    EXPECT_EQ(initiator_task_tag(*decode_bhs(header)), reserved_tag);
  }
}

TEST(PduCodec, FillsInTheDataLengthOnReceipt) {
  for (const Golden& g : golden()) {
    const uint32_t length = data_segment_length(*decode_bhs(header_of(g.bytes)));
    EXPECT_TRUE(length == data_length || length == 0) << name_of(opcode_of(g.pdu));
  }
  EXPECT_EQ(data_segment_length(*decode_bhs(encoded(NopOut{}))), data_length);
  EXPECT_EQ(data_segment_length(*decode_bhs(encoded(R2t{}))), 0U);
}

TEST(PduCodec, RefusesEveryOpcodeThatIsNotIscsis) {
  size_t known = 0;
  for (unsigned value = 0; value < 256; ++value) {
    Header header{};
    header[0] = static_cast<std::byte>(value);
    auto pdu = decode_bhs(header);
    EXPECT_EQ(pdu.has_value(), is_known(bhs_opcode(header))) << value;
    if (pdu) {
      ++known;
      EXPECT_EQ(opcode_of(*pdu), bhs_opcode(header));
    } else {
      EXPECT_EQ(pdu.error().code, Errc::unknown_opcode);
    }
  }
  EXPECT_EQ(known, 18U * 4) << "with the I bit and the reserved bit, both ways";
}

TEST(PduCodec, TellsTheDirection) {
  for (const Golden& g : golden()) {
    EXPECT_EQ(is_from_initiator(g.pdu), g.pdu.index() < 8) << name_of(opcode_of(g.pdu));
  }
}

TEST(PduCodec, RandomHeadersComeBackAsTheyWereUnderstood) {
  Random random(11);
  for (int i = 0; i < 20000; ++i) {
    Header header;
    random.fill(header);
    auto pdu = decode_bhs(header);
    if (!pdu) continue;
    const Header once = encoded(*pdu);
    auto again = decode_bhs(once);
    ASSERT_TRUE(again);
    EXPECT_EQ(hex(encoded(*again)), hex(once));
    (void)invalid(*pdu, bhs_data_segment_length(header), bhs_total_ahs_bytes(header));
  }
}

TEST(PduCodec, EveryFlippedBitIsDecodedOrRefused) {
  for (const Golden& g : golden()) {
    for (size_t bit = 0; bit < bhs_bytes * 8; ++bit) {
      Header header = header_of(g.bytes);
      header[bit / 8] ^= std::byte{1} << bit % 8;
      auto pdu = decode_bhs(header);
      if (pdu) (void)invalid(*pdu, bhs_data_segment_length(header), bhs_total_ahs_bytes(header));
      EXPECT_EQ(pdu.has_value(), is_known(bhs_opcode(header)));
    }
  }
}

TEST(PduCodec, StampsReachTheFieldsThatAPduHas) {
  Pdu response = ScsiResponse{};
  stamp_target(response, sn3, sn4, sn5);
  EXPECT_EQ(std::get<ScsiResponse>(response).stat_sn, sn3);
  EXPECT_EQ(std::get<ScsiResponse>(response).exp_cmd_sn, sn4);
  EXPECT_EQ(std::get<ScsiResponse>(response).max_cmd_sn, sn5);

  Pdu command = ScsiCommand{};
  stamp_target(command, sn5, sn5, sn5);
  stamp_exp_stat_sn(command, sn4);
  stamp_cmd_sn(command, sn3);
  EXPECT_EQ(std::get<ScsiCommand>(command).cmd_sn, sn3);
  EXPECT_EQ(std::get<ScsiCommand>(command).exp_stat_sn, sn4);
}

TEST(PduCodec, LoginRequestsAreImmediateWhateverTheBit) {
  EXPECT_TRUE(is_immediate(LoginRequest{}));
  EXPECT_FALSE(is_immediate(DataOut{}));
  EXPECT_TRUE(is_immediate(TextRequest{.immediate = true}));
}

TEST(PduCodecDeath, MoreDataThanTheFieldCanSayIsABug) {
  Header out;
  EXPECT_DEATH(encode_bhs(NopOut{}, data_segment_length_max + 1, 0, out), "bytes of data");
}

}  // namespace
}  // namespace vjbod::iscsi
