// SPDX-License-Identifier: Apache-2.0
#include "initiator/control/disk_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/iscsi/errc.h"

namespace vjbod::initiator {
namespace {

using testing::HasSubstr;
using testing::Not;

class DiskView : public testing::Test {
 protected:
  DiskView() {
    record.name = "disk1";
    record.peer = "nas2";
    record.lun_name = "lun7";
    status.state = DiskState::reconnecting;
    status.attempt = 3;
  }
  std::string note(iscsi::Errc code) {
    status.last_error = DiskError{make_error_code(code), "The login failed.", {}};
    DiskViewInput input;
    input.record = &record;
    input.status = &status;
    return disk_view(input).note();
  }
  DiskRecord record;
  DiskStatus status;
};

TEST_F(DiskView, SaysWhatToDoWhenAPeerDoesNotKnowTheLunOrThisHost) {
  for (const iscsi::Errc code : {iscsi::Errc::target_not_found, iscsi::Errc::not_allowed}) {
    EXPECT_THAT(note(code), HasSubstr("attempt 3"));
    EXPECT_THAT(note(code), HasSubstr("The login failed. `vjbod target lun list` on nas2"));
    EXPECT_THAT(note(code), HasSubstr("LUN lun7"));
    EXPECT_THAT(note(code), HasSubstr("vjbod target lun bind"));
    EXPECT_THAT(note(code), Not(HasSubstr("vjbod connect"))) << "it tries again by itself";
  }
}

TEST_F(DiskView, SaysWhatToDoAtATargetOfAnotherMake) {
  record.peer.clear();
  EXPECT_THAT(note(iscsi::Errc::target_not_found), HasSubstr("Check that the target has the LUN"));
  EXPECT_THAT(note(iscsi::Errc::authentication), HasSubstr("secrets of CHAP"));
}

TEST_F(DiskView, AFailedDiskIsConnectedByAPerson) {
  status.state = DiskState::failed;
  EXPECT_THAT(note(iscsi::Errc::authentication), HasSubstr("then `vjbod connect disk1`."));
}

TEST_F(DiskView, ALostConnectionNeedsNoAdvice) {
  EXPECT_THAT(note(iscsi::Errc::connection_lost), HasSubstr("The login failed."));
  EXPECT_THAT(note(iscsi::Errc::connection_lost), Not(HasSubstr("vjbod")));
}

}  // namespace
}  // namespace vjbod::initiator
