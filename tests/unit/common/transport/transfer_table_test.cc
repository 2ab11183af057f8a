// SPDX-License-Identifier: Apache-2.0
// Which data may come for which task, at both ends, and what is an error of the peer.
#include <gtest/gtest.h>

#include "common/iscsi/errc.h"
#include "common/transport/tcp/initiator_transfer_table.h"
#include "common/transport/tcp/target_transfer_table.h"

namespace vjbod::transport {
namespace {

using iscsi::Errc;
using Next = TargetTransferTable::Next;

class TargetTransfers : public ::testing::Test {
 protected:
  // A task that waits for `size` bytes at `offset`, with its first R2T sent.
  TaskHandle waiting(size_t size, uint32_t burst = 8192, uint64_t offset = 0) {
    const TaskHandle handle = table.begin_task(7, {});
    memory.assign(size, std::byte{0});
    table.start_get(table.get(handle), offset, memory);
    window = table.open_r2t(table.get(handle), burst);
    return handle;
  }
  iscsi::DataOut data_out(uint32_t length) const {
    iscsi::DataOut pdu;
    pdu.itt = 7;
    pdu.ttt = window.ttt;
    pdu.buffer_offset = window.buffer_offset;
    pdu.data_segment_length = length;
    pdu.final = length == window.length;
    return pdu;
  }
  void expect_error(const iscsi::DataOut& pdu, Errc code, const std::string& word) {
    const auto place = table.place(pdu);
    ASSERT_FALSE(place.has_value());
    EXPECT_EQ(place.error().code, code);
    EXPECT_NE(place.error().text.find(word), std::string::npos) << place.error().text;
  }
  void expect_dropped(const iscsi::DataOut& pdu) {
    const auto place = table.place(pdu);
    ASSERT_TRUE(place.has_value()) << place.error().text;
    EXPECT_EQ(place->task, no_task);
  }

  TargetTransferTable table;
  TargetTransferTable::R2tWindow window;
  std::vector<std::byte> memory;
};

TEST_F(TargetTransfers, AnR2tAsksForAtMostABurst) {
  waiting(20000, 8192, 512);
  EXPECT_EQ(window.buffer_offset, 512u);
  EXPECT_EQ(window.length, 8192u);
  EXPECT_EQ(window.r2t_sn, 0u);
}

TEST_F(TargetTransfers, DataOutGoesToItsPlaceAndTheNextBurstIsAskedFor) {
  const TaskHandle handle = waiting(10000);
  const auto first = table.place(data_out(8192));
  ASSERT_TRUE(first.has_value()) << first.error().text;
  EXPECT_EQ(first->destination.data(), memory.data());
  EXPECT_EQ(first->destination.size(), 8192u);
  EXPECT_EQ(table.placed(handle, 8192), Next::ask);

  window = table.open_r2t(table.get(handle), 8192);
  EXPECT_EQ(window.buffer_offset, 8192u);
  EXPECT_EQ(window.length, 10000u - 8192);
  EXPECT_EQ(window.r2t_sn, 1u);
  const auto second = table.place(data_out(window.length));
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->destination.data(), memory.data() + 8192);
  EXPECT_EQ(table.placed(handle, window.length), Next::done);
}

TEST_F(TargetTransfers, AnR2tMayBeAnsweredInParts) {
  const TaskHandle handle = waiting(3000);
  ASSERT_TRUE(table.place(data_out(1000)).has_value());
  EXPECT_EQ(table.placed(handle, 1000), Next::wait);
  iscsi::DataOut rest = data_out(2000);
  rest.buffer_offset = 1000;
  rest.data_sn = 1;
  rest.final = true;
  ASSERT_TRUE(table.place(rest).has_value());
  EXPECT_EQ(table.placed(handle, 2000), Next::done);
}

TEST_F(TargetTransfers, DataOutBeyondItsR2tIsAnError) {
  waiting(3000);
  expect_error(data_out(3001), Errc::protocol, "3000 left");
}

TEST_F(TargetTransfers, DataOutAtTheWrongOffsetIsAnError) {
  waiting(3000);
  iscsi::DataOut pdu = data_out(1000);
  pdu.buffer_offset = 1000;
  expect_error(pdu, Errc::protocol, "Buffer Offset");
}

TEST_F(TargetTransfers, DataOutWithTheWrongDataSnIsAnError) {
  waiting(3000);
  iscsi::DataOut pdu = data_out(1000);
  pdu.data_sn = 1;
  expect_error(pdu, Errc::bad_sequence_number, "DataSN");
}

TEST_F(TargetTransfers, DataOutWithAnotherIttThanItsR2tIsAnError) {
  waiting(3000);
  iscsi::DataOut pdu = data_out(1000);
  pdu.itt = 8;
  expect_error(pdu, Errc::protocol, "ITT");
}

TEST_F(TargetTransfers, ALastDataOutThatLeavesSomethingOutIsAnError) {
  waiting(3000);
  iscsi::DataOut pdu = data_out(1000);
  pdu.final = true;
  expect_error(pdu, Errc::protocol, "leaves 2000 bytes");
}

TEST_F(TargetTransfers, ATttThatNoR2tHadIsAnError) {
  waiting(3000);
  iscsi::DataOut pdu = data_out(1000);
  pdu.ttt = window.ttt + 1;  // a slot that was never used
  expect_error(pdu, Errc::protocol, "no R2T");
  pdu.ttt = window.ttt + (1u << 12);  // the R2T after the last one
  expect_error(pdu, Errc::protocol, "no R2T");
}

TEST_F(TargetTransfers, UnsolicitedDataOutIsAnError) {
  waiting(3000);
  iscsi::DataOut pdu = data_out(1000);
  pdu.ttt = iscsi::reserved_tag;
  expect_error(pdu, Errc::protocol, "InitialR2T");
}

TEST_F(TargetTransfers, DataOutForATransferThatWasGivenUpIsDropped) {
  const TaskHandle handle = waiting(3000);
  table.set_over(table.get(handle));
  expect_dropped(data_out(1000));
}

TEST_F(TargetTransfers, DataOutForATaskThatIsOverIsDropped) {
  const TaskHandle handle = waiting(3000);
  table.get(handle).moving = TargetTransferTable::Moving::none;
  table.end_task(handle);
  expect_dropped(data_out(1000));
  // The next task in the same slot does not get it either.
  const iscsi::DataOut late = data_out(1000);
  waiting(3000);
  expect_dropped(late);
}

TEST_F(TargetTransfers, ATttIsNeverTheReservedOne) {
  // The last slot, whose TTT could become all ones.
  TaskHandle handle = no_task;
  for (size_t i = 0; i < TargetTransferTable::tasks_max; ++i) handle = table.begin_task(7, {});
  TargetTransferTable::Task& task = table.get(handle);
  task.r2t_serial = (1u << 20) - 2;
  memory.resize(100);
  table.start_get(task, 0, memory);
  EXPECT_NE(table.open_r2t(task, 8192).ttt, iscsi::reserved_tag);
}

TEST_F(TargetTransfers, MoreTasksThanTheTableHoldsAreRefused) {
  for (size_t i = 0; i < TargetTransferTable::tasks_max; ++i)
    ASSERT_NE(table.begin_task(static_cast<uint32_t>(i), {}), no_task);
  EXPECT_EQ(table.begin_task(1, {}), no_task);
}

TEST_F(TargetTransfers, HandlesOfEarlierTasksAreNotKnownAnyMore) {
  const TaskHandle first = table.begin_task(1, {});
  table.end_task(first);
  const TaskHandle second = table.begin_task(2, {});
  EXPECT_NE(first, second);
  EXPECT_EQ(table.find(first), nullptr);
  EXPECT_EQ(table.get(second).itt, 2u);
}

class InitiatorTransfers : public ::testing::Test {
 protected:
  TaskHandle reading(size_t size) {
    memory.assign(size, std::byte{0});
    return sent(table.begin_task(5, {}, memory));
  }
  TaskHandle writing(size_t size) {
    memory.assign(size, std::byte{0});
    return sent(table.begin_task(5, memory, {}));
  }
  TaskHandle sent(TaskHandle handle) {
    table.get(handle).command_sent = true;
    return handle;
  }
  static iscsi::DataIn data_in(uint32_t length, uint32_t offset = 0, uint32_t data_sn = 0) {
    iscsi::DataIn pdu;
    pdu.itt = 5;
    pdu.data_segment_length = length;
    pdu.buffer_offset = offset;
    pdu.data_sn = data_sn;
    return pdu;
  }
  static iscsi::R2t r2t(uint32_t length, uint32_t offset = 0, uint32_t r2t_sn = 0) {
    iscsi::R2t pdu;
    pdu.itt = 5;
    pdu.ttt = 1;
    pdu.desired_data_transfer_length = length;
    pdu.buffer_offset = offset;
    pdu.r2t_sn = r2t_sn;
    return pdu;
  }
  template <typename T>
  static void expect_error(const Result<T>& result, Errc code) {
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, code) << result.error().text;
  }
  static constexpr uint32_t burst = 8192;

  InitiatorTransferTable table;
  std::vector<std::byte> memory;
};

TEST_F(InitiatorTransfers, DataInGoesToItsPlaceInOrder) {
  const TaskHandle handle = reading(3000);
  const auto first = table.place(data_in(1000));
  const auto second = table.place(data_in(2000, 1000, 1));
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(first->task, handle);
  EXPECT_EQ(second->destination.data(), memory.data() + 1000);
  EXPECT_EQ(second->destination.size(), 2000u);
  EXPECT_EQ(table.take_finished(5, "SCSI Response")->data_in_bytes, 3000u);
}

TEST_F(InitiatorTransfers, DataInBeyondTheReadIsAnError) {
  reading(3000);
  expect_error(table.place(data_in(3001)), Errc::protocol);
}

TEST_F(InitiatorTransfers, DataInThatSkipsBytesIsAnError) {
  reading(3000);
  expect_error(table.place(data_in(1000, 1000)), Errc::protocol);
}

TEST_F(InitiatorTransfers, DataInThatComesTwiceIsAnError) {
  reading(3000);
  ASSERT_TRUE(table.place(data_in(1000)).has_value());
  expect_error(table.place(data_in(1000, 0, 1)), Errc::protocol);
}

TEST_F(InitiatorTransfers, DataInWithTheWrongDataSnIsAnError) {
  reading(3000);
  expect_error(table.place(data_in(1000, 0, 1)), Errc::bad_sequence_number);
}

TEST_F(InitiatorTransfers, DataInForAWriteIsAnError) {
  writing(3000);
  expect_error(table.place(data_in(1000)), Errc::protocol);
}

TEST_F(InitiatorTransfers, DataInForNoTaskIsAnError) {
  expect_error(table.place(data_in(1000)), Errc::protocol);
}

TEST_F(InitiatorTransfers, DataInWithoutDataIsCounted) {
  reading(3000);
  const auto place = table.place(data_in(0, 3000));
  ASSERT_TRUE(place.has_value());
  EXPECT_TRUE(place->destination.empty());
  EXPECT_TRUE(table.place(data_in(1000, 0, 1)).has_value());
}

TEST_F(InitiatorTransfers, AnR2tWithinTheWriteIsTaken) {
  const TaskHandle handle = writing(10000);
  const auto taken = table.accept_r2t(r2t(burst, 1808), burst);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(*taken, handle);
  EXPECT_EQ(table.get(handle).r2t_left, burst);
}

TEST_F(InitiatorTransfers, AnR2tBeyondTheWriteIsAnError) {
  writing(10000);
  expect_error(table.accept_r2t(r2t(burst, 1809), burst), Errc::protocol);
  expect_error(table.accept_r2t(r2t(1, 0xffffffff), burst), Errc::protocol);
}

TEST_F(InitiatorTransfers, AnR2tForMoreThanABurstOrNothingIsAnError) {
  writing(10000);
  expect_error(table.accept_r2t(r2t(burst + 1), burst), Errc::bad_field);
  expect_error(table.accept_r2t(r2t(0), burst), Errc::bad_field);
}

TEST_F(InitiatorTransfers, AnR2tWithoutATagIsAnError) {
  writing(10000);
  iscsi::R2t pdu = r2t(1000);
  pdu.ttt = iscsi::reserved_tag;
  expect_error(table.accept_r2t(pdu, burst), Errc::bad_field);
}

TEST_F(InitiatorTransfers, ASecondR2tBeforeTheFirstIsAnsweredIsAnError) {
  writing(10000);
  ASSERT_TRUE(table.accept_r2t(r2t(1000), burst).has_value());
  expect_error(table.accept_r2t(r2t(1000, 1000, 1), burst), Errc::protocol);
}

TEST_F(InitiatorTransfers, AnR2tWithTheWrongR2tSnIsAnError) {
  writing(10000);
  expect_error(table.accept_r2t(r2t(1000, 0, 1), burst), Errc::bad_sequence_number);
}

TEST_F(InitiatorTransfers, AnR2tForAReadIsAnError) {
  reading(10000);
  expect_error(table.accept_r2t(r2t(1000), burst), Errc::protocol);
}

TEST_F(InitiatorTransfers, NothingMayComeForACommandThatWasNotSent) {
  memory.resize(100);
  table.begin_task(5, {}, memory);
  expect_error(table.place(data_in(100)), Errc::protocol);
  expect_error(table.accept_r2t(r2t(100), burst), Errc::protocol);
  expect_error(table.take_finished(5, "SCSI Response"), Errc::protocol);
}

TEST_F(InitiatorTransfers, AFinishedTaskIsGone) {
  reading(100);
  ASSERT_TRUE(table.take_finished(5, "SCSI Response").has_value());
  expect_error(table.take_finished(5, "SCSI Response"), Errc::protocol);
  expect_error(table.place(data_in(100)), Errc::protocol);
  EXPECT_EQ(table.size(), 0u);
}

TEST_F(InitiatorTransfers, UsingAnIttTwiceIsABug) {
  reading(100);
  EXPECT_DEATH(table.begin_task(5, {}, {}), "in use");
}

}  // namespace
}  // namespace vjbod::transport
