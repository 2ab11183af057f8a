// SPDX-License-Identifier: Apache-2.0
// What waits to be sent, cut into PDUs.
#include "common/transport/tcp/pdu_sender.h"

#include <gtest/gtest.h>

#include "tests/unit/common/transport/fake_byte_stream.h"

namespace vjbod::transport {
namespace {

class PduSenderTest : public ::testing::Test {
 protected:
  PduSenderTest() {
    parameters.peer_max_recv_data_segment_length = 4096;
    parameters.max_burst_length = 10000;
    sender.enable_full_feature(parameters, numbers);
  }
  TargetTransferTable::Task& put(uint32_t itt, ConstBytes data, uint64_t offset = 0) {
    TargetTransferTable::Task& task = target.get(target.begin_task(itt, {}));
    target.start_put(task);
    sender.queue_put(task, offset, data);
    return task;
  }
  void respond(uint32_t itt, uint32_t stat_sn, uint8_t status = 0) {
    iscsi::ScsiResponse response;
    response.itt = itt;
    response.stat_sn = SerialNumber(stat_sn);
    response.status = status;
    sender.queue_control(response, {});
  }
  std::vector<Wire::Received> send_all() {
    std::vector<std::byte> bytes;
    while (sender.fill()) {
      for (const iovec& piece : sender.batch().unsent()) {
        const auto* from = static_cast<const std::byte*>(piece.iov_base);
        bytes.insert(bytes.end(), from, from + piece.iov_len);
      }
      size_t size = 0;
      for (const iovec& piece : sender.batch().unsent()) size += piece.iov_len;
      sender.batch().sent(size);
      done.insert(done.end(), sender.batch().done().begin(), sender.batch().done().end());
      sender.batch_sent();
    }
    return Wire::decode(bytes);
  }

  iscsi::NegotiatedParameters parameters;
  SequenceNumbers numbers;
  TargetTransferTable target;
  InitiatorTransferTable initiator;
  PduSender sender{target, initiator};
  std::vector<TaskHandle> done;
};

TEST_F(PduSenderTest, DataIsCutAtSegmentsAndBurstsWithTheFinalBitAtEachBurst) {
  numbers.exp_cmd_sn = SerialNumber(3);
  numbers.max_cmd_sn = SerialNumber(9);
  const std::vector<std::byte> data(25000);
  auto& task = put(5, data, 100);
  EXPECT_EQ(task.sequence_count, 8u);

  const auto pdus = send_all();

  const std::vector<uint32_t> sizes = {4096, 4096, 1808, 4096, 4096, 1808, 4096, 904};
  const std::vector<bool> finals = {false, false, true, false, false, true, false, true};
  ASSERT_EQ(pdus.size(), sizes.size());
  uint32_t offset = 100;
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    const auto& pdu = pdus[i].as<iscsi::DataIn>();
    EXPECT_EQ(pdu.data_segment_length, sizes[i]) << i;
    EXPECT_EQ(pdu.final, finals[i]) << i;
    EXPECT_EQ(pdu.data_sn, i);
    EXPECT_EQ(pdu.buffer_offset, offset);
    EXPECT_EQ(pdu.exp_cmd_sn, SerialNumber(3));
    EXPECT_EQ(pdu.max_cmd_sn, SerialNumber(9));
    EXPECT_EQ(pdu.ttt, iscsi::reserved_tag);
    offset += sizes[i];
  }
  EXPECT_EQ(done, std::vector<TaskHandle>{task.handle});
}

TEST_F(PduSenderTest, DataSnGoesOnInTheNextPut) {
  const std::vector<std::byte> data(9000);
  auto& task = put(5, data);
  send_all();
  task.moving = TargetTransferTable::Moving::none;
  target.start_put(task);
  sender.queue_put(task, 9000, data);
  const auto pdus = send_all();
  ASSERT_EQ(pdus.size(), 3u);
  EXPECT_EQ(pdus[0].as<iscsi::DataIn>().data_sn, 3u);
  EXPECT_EQ(pdus[0].as<iscsi::DataIn>().buffer_offset, 9000u);
}

TEST_F(PduSenderTest, AGoodResponseRidesOnTheLastDataIn) {
  const std::vector<std::byte> data(5000);
  put(5, data);
  respond(5, 77);
  const auto pdus = send_all();
  ASSERT_EQ(pdus.size(), 2u);
  EXPECT_FALSE(pdus[0].as<iscsi::DataIn>().has_status);
  EXPECT_TRUE(pdus[1].as<iscsi::DataIn>().has_status);
  EXPECT_EQ(pdus[1].as<iscsi::DataIn>().stat_sn, SerialNumber(77));
}

TEST_F(PduSenderTest, ABadResponseIsAPduOfItsOwn) {
  const std::vector<std::byte> data(100);
  put(5, data);
  respond(5, 77, 2);
  const auto pdus = send_all();
  ASSERT_EQ(pdus.size(), 2u);
  EXPECT_EQ(pdus[1].as<iscsi::ScsiResponse>().status, 2);
}

TEST_F(PduSenderTest, AResponseWithSenseIsAPduOfItsOwn) {
  const std::vector<std::byte> data(100);
  put(5, data);
  iscsi::ScsiResponse response;
  response.itt = 5;
  sender.queue_control(response, data);
  EXPECT_EQ(send_all().size(), 2u);
}

TEST_F(PduSenderTest, AResponseNeverOvertakesAPduWithAnEarlierStatSn) {
  const std::vector<std::byte> data(100);
  put(5, data);
  iscsi::NopIn ping;
  ping.stat_sn = SerialNumber(10);
  sender.queue_control(ping, {});
  respond(5, 11);
  const auto pdus = send_all();
  ASSERT_EQ(pdus.size(), 3u);
  EXPECT_TRUE(pdus[1].is<iscsi::NopIn>());
  EXPECT_TRUE(pdus[2].is<iscsi::ScsiResponse>());
}

TEST_F(PduSenderTest, AStatusGoesAloneWhenOtherDataStandsBehindItsOwn) {
  const std::vector<std::byte> data(100);
  put(1, data);
  put(2, data);
  respond(2, 10);
  respond(1, 11);
  const auto pdus = send_all();
  ASSERT_EQ(pdus.size(), 3u);
  EXPECT_EQ(pdus[1].as<iscsi::DataIn>().stat_sn, SerialNumber(10));
  EXPECT_EQ(pdus[2].as<iscsi::ScsiResponse>().stat_sn, SerialNumber(11));
}

TEST_F(PduSenderTest, AStatusDoesNotRideOnAnEarlierPutOfTheTask) {
  const std::vector<std::byte> small(100), large(20000);
  auto& task = put(5, small);
  task.moving = TargetTransferTable::Moving::none;
  target.start_put(task);
  sender.queue_put(task, 100, large);
  respond(5, 3);
  const auto pdus = send_all();
  EXPECT_FALSE(pdus.front().as<iscsi::DataIn>().has_status);
  EXPECT_TRUE(pdus.back().as<iscsi::DataIn>().has_status);
}

TEST_F(PduSenderTest, AResponseAfterItsDataWasSentIsAPduOfItsOwn) {
  const std::vector<std::byte> data(20000);
  put(5, data);
  send_all();
  respond(5, 3);
  const auto pdus = send_all();
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_TRUE(pdus[0].is<iscsi::ScsiResponse>());
}

TEST_F(PduSenderTest, MemoryGivenBackInTheQueueIsNotReadAndItsNumbersAreFreeAgain) {
  auto data = std::make_unique<std::vector<std::byte>>(20000);
  auto& task = put(5, *data);
  sender.give_back(task.handle);
  data.reset();
  EXPECT_TRUE(send_all().empty());
  EXPECT_TRUE(done.empty());
  EXPECT_EQ(task.sequence_count, 0u);
}

TEST_F(PduSenderTest, MemoryGivenBackUnderAStatusIsCopied) {
  auto data = std::make_unique<std::vector<std::byte>>(20000, std::byte{9});
  auto& task = put(5, *data);
  respond(5, 3);
  sender.give_back(task.handle);
  data.reset();
  const auto pdus = send_all();
  ASSERT_EQ(pdus.size(), 6u);
  EXPECT_TRUE(pdus.back().as<iscsi::DataIn>().has_status);
  EXPECT_EQ(pdus.back().data.back(), std::byte{9});
  EXPECT_TRUE(done.empty());
}

TEST_F(PduSenderTest, DroppingTransfersLeavesWhatMustArrive) {
  const std::vector<std::byte> data(20000);
  put(1, data);
  respond(1, 1);
  put(2, data);
  respond(2, 2, 2);
  sender.queue_control(iscsi::LogoutResponse{}, {});
  sender.drop_transfers();
  EXPECT_TRUE(sender.must_flush());
  const auto pdus = send_all();
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_TRUE(pdus[0].is<iscsi::LogoutResponse>());
  EXPECT_FALSE(sender.must_flush());
  EXPECT_EQ(sender.control_waiting(), 0u);
}

TEST_F(PduSenderTest, ItIsCrowdedByCountAndByBytes) {
  for (size_t i = 0; i < PduSender::crowded_pdus; ++i) {
    EXPECT_FALSE(sender.crowded());
    sender.queue_control(iscsi::NopIn{}, {});
  }
  EXPECT_TRUE(sender.crowded());
  send_all();
  EXPECT_FALSE(sender.crowded());
  const std::vector<std::byte> data(4096);
  for (size_t i = 0; i < PduSender::crowded_bytes / data.size(); ++i)
    sender.queue_control(iscsi::NopIn{}, data);
  EXPECT_TRUE(sender.crowded());
}

}  // namespace
}  // namespace vjbod::transport
