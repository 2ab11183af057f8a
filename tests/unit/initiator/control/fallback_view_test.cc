// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "initiator/control/disk_view.h"

namespace vjbod::initiator {
namespace {

using namespace std::chrono_literals;
using transport::RdmaErrc;

class FallbackViewTest : public testing::Test {
 protected:
  FallbackViewTest() {
    record.name = "disk1";
    status.state = DiskState::connected;
    status.connection = transport::Kind::iscsi;
    input.record = &record;
    input.status = &status;
  }
  v1::Disk view() const { return disk_view(input); }
  void failed(RdmaErrc code, std::string text) {
    status.rdma_failure = DiskError{make_error_code(code), std::move(text), 1s};
  }

  DiskRecord record;
  DiskStatus status;
  DiskViewInput input;
};

TEST_F(FallbackViewTest, ADiskOnIscsiWithoutAnyRdmaSaysSoAndIsNotDegraded) {
  input.no_iser = NoIser{RdmaErrc::no_rdma_device, "no RDMA device on eth0 (nas2)", true};

  const v1::Disk disk = view();

  EXPECT_TRUE(disk.fallback().active());
  EXPECT_FALSE(disk.fallback().degraded());
  EXPECT_EQ(disk.fallback().reason_code(), "no-rdma-device");
  EXPECT_EQ(disk.note(), "iSER failed: no RDMA device on eth0 (nas2)");
}

TEST_F(FallbackViewTest, WhatFailedOverAWayIsTheReason) {
  failed(RdmaErrc::connect_timeout, "It does not answer.");
  status.rdma_tried_in = 42s;
  input.fallbacks = 3;

  const v1::Disk disk = view();

  EXPECT_TRUE(disk.fallback().degraded());
  EXPECT_EQ(disk.fallback().reason_code(), "connect-timeout");
  EXPECT_EQ(disk.fallback().reason_text(), "It does not answer");
  EXPECT_EQ(disk.fallback().count(), 3u);
  EXPECT_EQ(disk.fallback().next_iser_s(), 42u);
  EXPECT_EQ(disk.note(), "iSER failed: It does not answer; not tried again for 42 s");
}

TEST_F(FallbackViewTest, RdmaThatCameSinceIsTold) {
  const v1::Disk disk = view();
  EXPECT_TRUE(disk.fallback().active());
  EXPECT_EQ(disk.fallback().reason_code(), "iser-available");
  EXPECT_EQ(disk.note(), "iSER can be used now; see: vjbod reconnect disk1");
}

TEST_F(FallbackViewTest, NothingIsSaidOfADiskThatIsAsItWasWanted) {
  failed(RdmaErrc::connect_timeout, "It does not answer.");
  record.choices.transport = "iscsi";
  EXPECT_FALSE(view().fallback().active());
  EXPECT_EQ(view().note(), "");

  record.choices.transport = "auto";
  status.connection = transport::Kind::iser;
  EXPECT_FALSE(view().fallback().active());
  EXPECT_EQ(view().fallback().reason_code(), "");
  EXPECT_EQ(view().connection_type(), "iser");
}

TEST_F(FallbackViewTest, ADiskThatMustUseIserAndCannotHasTheReasonWithoutAFallback) {
  record.choices.transport = "iser";
  status.state = DiskState::reconnecting;
  status.connection.reset();
  failed(RdmaErrc::device_removed, "Gone.");
  EXPECT_FALSE(view().fallback().active());
  EXPECT_EQ(view().fallback().reason_code(), "device-removed");
}

}  // namespace
}  // namespace vjbod::initiator
