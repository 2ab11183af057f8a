// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/pdu_rules.h"

#include <vector>

#include <gtest/gtest.h>

namespace vjbod::iscsi {
namespace {

constexpr auto stage_2 = static_cast<Stage>(2);

TEST(PduRules, OrdinaryPdusAreFine) {
  for (const Pdu& pdu : std::vector<Pdu>{
           NopOut{.itt = 1},
           NopOut{.immediate = true, .ttt = 7},
           ScsiCommand{.read = true, .expected_data_transfer_length = 512},
           ScsiCommand{.final = false, .write = true, .expected_data_transfer_length = 512},
           ScsiCommand{},
           TaskManagementRequest{},
           TaskManagementRequest{.function = static_cast<TaskManagementFunction>(99)},
           LoginRequest{},
           LoginRequest{.transit = true, .next_stage = Stage::operational},
           LoginRequest{.transit = true, .next_stage = Stage::full_feature},
           LoginRequest{.continues = true, .current_stage = Stage::operational},
           TextRequest{},
           TextRequest{.final = false, .continues = true},
           DataOut{.buffer_offset = 0xffffffff},
           LogoutRequest{},
           SnackRequest{},
           NopIn{.itt = 1},
           NopIn{.ttt = 1},
           NopIn{},
           ScsiResponse{.underflow = true},
           ScsiResponse{.response = 1},
           ScsiResponse{.response = 0x80},
           TaskManagementResponse{},
           TaskManagementResponse{.result = TaskManagementResult::rejected},
           LoginResponse{},
           LoginResponse{.transit = true, .current_stage = stage_2, .status_class = 2},
           TextResponse{},
           TextResponse{.final = false, .ttt = 1},
           DataIn{},
           DataIn{.final = true, .has_status = true},
           LogoutResponse{},
           R2t{.desired_data_transfer_length = 1},
           AsyncMessage{},
           AsyncMessage{.event = static_cast<AsyncEvent>(99)},
           Reject{}}) {
    auto reason = invalid(pdu, 0, 0);
    EXPECT_FALSE(reason) << *reason;
  }
}

TEST(PduRules, ImmediateDataUpToTheExpectedLengthIsFine) {
  const ScsiCommand write{.write = true, .expected_data_transfer_length = 512};
  EXPECT_FALSE(invalid(write, 512, 0));
  EXPECT_EQ(invalid(write, 513, 0),
            "SCSI Command: 513 bytes of immediate data exceed the Expected Data Transfer Length of "
            "512");
}

TEST(PduRules, OnlyACommandHasAdditionalHeaderSegments) {
  EXPECT_FALSE(invalid(ScsiCommand{}, 0, 8));
  EXPECT_EQ(invalid(NopOut{.itt = 1}, 0, 8),
            "NOP-Out: it has 8 bytes of additional header segments; only a SCSI Command may");
}

struct Bad {
  Pdu pdu;
  uint32_t data_segment_length;
  const char* reason;
};
class InvalidPdu : public testing::TestWithParam<Bad> {};

TEST_P(InvalidPdu, IsNamedWithItsField) {
  EXPECT_EQ(invalid(GetParam().pdu, GetParam().data_segment_length, 0), GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(
    All, InvalidPdu,
    testing::Values(
        Bad{NopOut{}, 0, "NOP-Out: without an Initiator Task Tag it must be immediate"},
        Bad{ScsiCommand{.attribute = static_cast<TaskAttribute>(5)}, 0,
            "SCSI Command: task attribute 5 does not exist"},
        Bad{ScsiCommand{.final = false, .read = true}, 0,
            "SCSI Command: the F and W bits are both 0"},
        Bad{ScsiCommand{.expected_data_transfer_length = 1}, 0,
            "SCSI Command: Expected Data Transfer Length is 1 with the R and W bits both 0"},
        Bad{ScsiCommand{.read = true, .expected_data_transfer_length = 512}, 512,
            "SCSI Command: 512 bytes of immediate data come with the W bit 0"},
        Bad{ScsiCommand{.itt = reserved_tag}, 0,
            "SCSI Command: the Initiator Task Tag is the reserved one"},
        Bad{TaskManagementRequest{}, 4,
            "Task Management Function Request: it has 4 bytes of data and takes none"},
        Bad{LoginRequest{.transit = true, .continues = true}, 0,
            "Login Request: the T and C bits are both set"},
        Bad{LoginRequest{.current_stage = stage_2}, 0,
            "Login Request: CSG 2 is not a stage of a login"},
        Bad{LoginRequest{.current_stage = Stage::full_feature}, 0,
            "Login Request: CSG 3 is not a stage of a login"},
        Bad{LoginRequest{.transit = true, .next_stage = stage_2}, 0,
            "Login Request: NSG 2 is not a stage"},
        Bad{LoginRequest{.transit = true,
                         .current_stage = Stage::operational,
                         .next_stage = Stage::operational},
            0, "Login Request: NSG 1 does not come after CSG 1"},
        Bad{LoginRequest{.version_max = 0, .version_min = 1}, 0,
            "Login Request: Version-min 1 is greater than Version-max 0"},
        Bad{TextRequest{.final = true, .continues = true}, 0,
            "Text Request: the F and C bits are both set"},
        Bad{DataOut{.buffer_offset = 0xffffff00}, 0x100,
            "Data-Out: Buffer Offset 4294967040 and 256 bytes of data go beyond 32 bits"},
        Bad{LogoutRequest{.reason = static_cast<LogoutReason>(3)}, 0,
            "Logout Request: logout reason 3 does not exist"},
        Bad{SnackRequest{.type = 4}, 0, "SNACK Request: SNACK type 4 does not exist"},
        Bad{ScsiResponse{.overflow = true, .underflow = true}, 0,
            "SCSI Response: the O and U bits are both set"},
        Bad{ScsiResponse{.bidirectional_read_overflow = true, .bidirectional_read_underflow = true},
            0, "SCSI Response: the o and u bits are both set"},
        Bad{ScsiResponse{.response = 2}, 0, "SCSI Response: response 0x02 does not exist"},
        Bad{TaskManagementResponse{.result = static_cast<TaskManagementResult>(7)}, 0,
            "Task Management Function Response: response 7 does not exist"},
        Bad{LoginResponse{.transit = true}, 0, "Login Response: NSG 0 does not come after CSG 0"},
        Bad{TextResponse{.final = true, .continues = true}, 0,
            "Text Response: the F and C bits are both set"},
        Bad{TextResponse{.final = false}, 0,
            "Text Response: more is to come, but there is no Target Transfer Tag to ask for it"},
        Bad{DataIn{.final = false, .has_status = true}, 0,
            "Data-In: the S bit is set without the F bit"},
        Bad{DataIn{.final = true, .overflow = true, .underflow = true, .has_status = true}, 0,
            "Data-In: the O and U bits are both set"},
        Bad{DataIn{.buffer_offset = 0xffffffff}, 1,
            "Data-In: Buffer Offset 4294967295 and 1 bytes of data go beyond 32 bits"},
        Bad{LogoutResponse{.result = static_cast<LogoutResult>(4)}, 0,
            "Logout Response: response 4 does not exist"},
        Bad{R2t{.ttt = reserved_tag, .desired_data_transfer_length = 1}, 0,
            "R2T: the Target Transfer Tag is the reserved one"},
        Bad{R2t{}, 0, "R2T: the Desired Data Transfer Length is 0"},
        Bad{R2t{.buffer_offset = 0xffffffff, .desired_data_transfer_length = 1}, 0,
            "R2T: Buffer Offset 4294967295 and Desired Data Transfer Length 1 go beyond 32 "
            "bits"}));

}  // namespace
}  // namespace vjbod::iscsi
