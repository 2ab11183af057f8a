// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/login_status.h"

#include <gtest/gtest.h>

namespace vjbod::iscsi {
namespace {

TEST(LoginStatus, IsDescribedWithNumberAndName) {
  EXPECT_EQ(describe(LoginStatus::authentication_failure),
            "login status 0x0201, authentication failure");
  EXPECT_EQ(describe(LoginStatus::out_of_resources),
            "login status 0x0302, target out of resources");
  EXPECT_EQ(describe(login_status(2, 0x77)), "login status 0x0277, initiator error");
  EXPECT_EQ(describe(login_status(9, 1)), "login status 0x0901, unknown status");
}

TEST(LoginStatus, SplitsIntoClassAndDetail) {
  EXPECT_EQ(login_status(2, 7), LoginStatus::missing_parameter);
  EXPECT_EQ(status_class(LoginStatus::invalid_during_login), 2);
  EXPECT_EQ(status_detail(LoginStatus::invalid_during_login), 0x0b);
}

TEST(LoginStatus, TellsWhatRetryingIsGoodFor) {
  EXPECT_EQ(verdict_of(LoginStatus::success), LoginVerdict::success);
  EXPECT_EQ(verdict_of(LoginStatus::target_moved_permanently), LoginVerdict::redirect);
  for (const auto status :
       {LoginStatus::authentication_failure, LoginStatus::authorization_failure,
        LoginStatus::not_found, LoginStatus::target_removed, LoginStatus::unsupported_version}) {
    EXPECT_EQ(verdict_of(status), LoginVerdict::permanent) << describe(status);
  }
  for (const auto status : {LoginStatus::too_many_connections, LoginStatus::session_does_not_exist,
                            LoginStatus::target_error, LoginStatus::service_unavailable,
                            LoginStatus::out_of_resources, login_status(9, 9)}) {
    EXPECT_EQ(verdict_of(status), LoginVerdict::retry) << describe(status);
  }
}

}  // namespace
}  // namespace vjbod::iscsi
