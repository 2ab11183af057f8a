// SPDX-License-Identifier: Apache-2.0
#include "initiator/disk/scsi_translator.h"

#include <array>
#include <cerrno>
#include <vector>

#include <gtest/gtest.h>

#include "common/scsi/cdb.h"
#include "common/scsi/status.h"

namespace vjbod::initiator {
namespace {

using Action = Verdict::Action;
using scsi::SenseKey;

class Translation : public testing::Test {
 protected:
  template <typename T>
  T translated(const Piece& piece) {
    blocks = translate(piece, features, data, zeros, parameters, command);
    auto decoded = scsi::decode_cdb(command.cdb);
    return std::get<T>(decoded.value());
  }

  TargetFeatures features = [] {
    TargetFeatures f;
    f.transfer_blocks_max = 16;
    f.unmap = f.write_same = true;
    f.unmap_blocks_max = f.write_same_blocks_max = 1000;
    return f;
  }();
  std::vector<std::byte> data = std::vector<std::byte>(64 * 512);
  std::vector<std::byte> zeros = std::vector<std::byte>(8 * 512);
  std::array<std::byte, unmap_list_of_one_bytes> parameters{};
  ChannelCommand command;
  uint32_t blocks = 0;
};

TEST_F(Translation, CutsAReadToWhatTheTargetTakes) {
  Piece piece{.kind = PieceKind::read, .lba = 100, .blocks = 40, .request_offset_bytes = 512};

  const auto read = translated<scsi::Read>(piece);

  EXPECT_EQ(read.lba, 100u);
  EXPECT_EQ(read.blocks, 16u);
  EXPECT_EQ(command.read.data(), data.data() + 512);
  EXPECT_EQ(command.read.size(), 16u * 512);
  EXPECT_TRUE(command.write.empty());
}

TEST_F(Translation, GoesOnWhereThePieceStands) {
  Piece piece{.kind = PieceKind::write, .lba = 100, .blocks = 40, .blocks_done = 32};

  const auto write = translated<scsi::Write>(piece);

  EXPECT_EQ(write.lba, 132u);
  EXPECT_EQ(write.blocks, 8u);
  EXPECT_EQ(command.write.data(), data.data() + 32 * 512);
}

TEST_F(Translation, UsesSixteenBytesBeyondTwoTebibytes) {
  Piece piece{.kind = PieceKind::read, .lba = uint64_t{1} << 33, .blocks = 1};

  const auto read = translated<scsi::Read>(piece);

  EXPECT_EQ(read.size, scsi::CdbSize::sixteen);
  EXPECT_EQ(read.lba, uint64_t{1} << 33);
}

TEST_F(Translation, PassesForceUnitAccessOn) {
  Piece piece{.kind = PieceKind::write, .force_unit_access = true, .lba = 0, .blocks = 1};

  EXPECT_TRUE(translated<scsi::Write>(piece).force_unit_access);
}

TEST_F(Translation, AFlushIsForTheWholeDisk) {
  Piece piece{.kind = PieceKind::flush, .blocks = 1};

  const auto flush = translated<scsi::SynchronizeCache>(piece);

  EXPECT_EQ(flush.lba, 0u);
  EXPECT_EQ(flush.blocks, 0u);
  EXPECT_FALSE(flush.immediate);
}

TEST_F(Translation, TrimsWithOneDescriptor) {
  Piece piece{.kind = PieceKind::trim, .lba = 7, .blocks = 2000};

  translated<scsi::Unmap>(piece);

  auto list = scsi::UnmapList::parse(command.write);
  ASSERT_EQ(list->size(), 1u);
  EXPECT_EQ((*list)[0], (scsi::UnmapRange{7, 1000}));
}

TEST_F(Translation, KeepsTheSpaceWhereNoHoleIsAllowed) {
  features.write_same_unmaps = true;
  Piece piece{.kind = PieceKind::zero, .may_unmap = false, .lba = 0, .blocks = 10};

  EXPECT_FALSE(translated<scsi::WriteSame>(piece).unmap);
  piece.may_unmap = true;
  EXPECT_TRUE(translated<scsi::WriteSame>(piece).unmap);
}

TEST_F(Translation, SendsABlockOfZerosOnlyToTargetsThatNeedIt) {
  Piece piece{.kind = PieceKind::zero, .lba = 0, .blocks = 10};

  EXPECT_FALSE(translated<scsi::WriteSame>(piece).no_data_out);
  EXPECT_EQ(command.write.size(), 512u);
  features.write_same_no_data = true;
  EXPECT_TRUE(translated<scsi::WriteSame>(piece).no_data_out);
  EXPECT_TRUE(command.write.empty());
}

TEST_F(Translation, SendsZerosInPiecesWhereTheTargetHasNothingBetter) {
  Piece piece{.kind = PieceKind::zero_data, .lba = 0, .blocks = 100};

  const auto write = translated<scsi::Write>(piece);

  EXPECT_EQ(write.blocks, 8u);  // as many as there are zeros
  EXPECT_EQ(command.write.data(), zeros.data());
}

// --- answers ---

class Judgement : public testing::Test {
 protected:
  Verdict judge_sense(PieceKind kind, SenseKey key, uint8_t code, uint8_t qualifier,
                      bool deferred = false) {
    scsi::Sense sense;
    sense.key = key;
    sense.additional = {code, qualifier};
    sense.deferred = deferred;
    std::array<std::byte, scsi::fixed_sense_bytes> bytes{};
    const size_t length = scsi::build_fixed_sense(sense, bytes);
    ChannelCompletion completion;
    completion.status = static_cast<uint8_t>(scsi::Status::check_condition);
    completion.sense = ConstBytes(bytes).first(length);
    return judge(kind, command, completion, tries);
  }
  Verdict judge_status(scsi::Status status) {
    ChannelCompletion completion;
    completion.status = static_cast<uint8_t>(status);
    return judge(PieceKind::write, command, completion, tries);
  }
  int errno_of(PieceKind kind, SenseKey key, uint8_t code, uint8_t qualifier) {
    const Verdict verdict = judge_sense(kind, key, code, qualifier);
    EXPECT_EQ(verdict.action, Action::fail);
    return verdict.errno_value;
  }

  ChannelCommand command;
  Tries tries;
};

TEST_F(Judgement, MapsErrorsToErrnos) {
  EXPECT_EQ(errno_of(PieceKind::read, SenseKey::medium_error, 0x11, 0), EIO);
  EXPECT_EQ(errno_of(PieceKind::read, SenseKey::hardware_error, 0x44, 0), EIO);
  EXPECT_EQ(errno_of(PieceKind::write, SenseKey::illegal_request, 0x21, 0), EIO);
  EXPECT_EQ(errno_of(PieceKind::write, SenseKey::data_protect, 0x27, 0), EROFS);
  EXPECT_EQ(errno_of(PieceKind::write, SenseKey::data_protect, 0x27, 7), ENOSPC);
  EXPECT_EQ(errno_of(PieceKind::trim, SenseKey::illegal_request, 0x20, 0), EOPNOTSUPP);
  EXPECT_EQ(errno_of(PieceKind::read, SenseKey::not_ready, 0x3a, 0), EIO);
  EXPECT_EQ(judge_status(scsi::Status::reservation_conflict).errno_value, EBADE);
}

TEST_F(Judgement, WaitsForABusyTargetLongerAndLonger) {
  const Duration first = judge_status(scsi::Status::busy).delay;
  const Duration second = judge_status(scsi::Status::task_set_full).delay;
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(judge_status(scsi::Status::busy).action, Action::retry_later);

  EXPECT_GT(second, first);
  EXPECT_EQ(judge_status(scsi::Status::busy).delay, busy_delay_longest);
}

TEST_F(Judgement, RetriesUnitAttentionsThatChangeNothing) {
  EXPECT_EQ(judge_sense(PieceKind::write, SenseKey::unit_attention, 0x2a, 0x03).action,
            Action::retry);
}

TEST_F(Judgement, AsksAgainWhoTheLunIsWhenItMayHaveChanged) {
  for (auto [code, qualifier] :
       {std::pair{0x29, 0x00}, {0x29, 0x03}, {0x2a, 0x09}, {0x3f, 0x0e}, {0x3f, 0x03}})
    EXPECT_EQ(judge_sense(PieceKind::write, SenseKey::unit_attention, static_cast<uint8_t>(code),
                          static_cast<uint8_t>(qualifier))
                  .action,
              Action::probe);
  EXPECT_EQ(judge_sense(PieceKind::write, SenseKey::illegal_request, 0x25, 0).action,
            Action::probe);
}

TEST_F(Judgement, BoundsEveryKindOfRetryButBusy) {
  for (uint32_t i = 0; i < unit_attentions_max; ++i)
    ASSERT_EQ(judge_sense(PieceKind::write, SenseKey::unit_attention, 0x2a, 3).action,
              Action::retry);
  EXPECT_EQ(judge_sense(PieceKind::write, SenseKey::unit_attention, 0x2a, 3).action, Action::fail);

  for (uint32_t i = 0; i < retries_max; ++i)
    ASSERT_EQ(judge_sense(PieceKind::write, SenseKey::aborted_command, 0, 0).action, Action::retry);
  EXPECT_EQ(judge_sense(PieceKind::write, SenseKey::aborted_command, 0, 0).action, Action::fail);

  for (uint32_t i = 0; i < not_ready_max; ++i)
    ASSERT_EQ(judge_sense(PieceKind::write, SenseKey::not_ready, 4, 1).action, Action::retry_later);
  EXPECT_EQ(judge_sense(PieceKind::write, SenseKey::not_ready, 4, 1).action, Action::fail);
}

TEST_F(Judgement, ASuccessThatMovedTooLittleIsNone) {
  std::vector<std::byte> memory(512);
  command.read = memory;
  ChannelCompletion completion;
  completion.data_bytes = 511;
  EXPECT_EQ(judge(PieceKind::read, command, completion, tries).action, Action::retry);

  completion.data_bytes = 512;
  EXPECT_EQ(judge(PieceKind::read, command, completion, tries).action, Action::done);
}

TEST_F(Judgement, ADeferredErrorIsAnEarlierWriteThatIsLost) {
  const Verdict verdict = judge_sense(PieceKind::read, SenseKey::medium_error, 0x0c, 0, true);

  EXPECT_TRUE(verdict.writes_lost);
  EXPECT_EQ(verdict.action, Action::retry);
}

TEST_F(Judgement, FallsBackToZerosWhenWriteSameIsRefused) {
  EXPECT_EQ(judge_sense(PieceKind::zero, SenseKey::illegal_request, 0x20, 0).action,
            Action::fall_back);
  EXPECT_EQ(errno_of(PieceKind::zero_data, SenseKey::illegal_request, 0x20, 0), EIO);
}

TEST_F(Judgement, UnreadableSenseIsRetriedAndThenAnError) {
  ChannelCompletion completion;
  completion.status = static_cast<uint8_t>(scsi::Status::check_condition);
  for (uint32_t i = 0; i < retries_max; ++i)
    ASSERT_EQ(judge(PieceKind::read, command, completion, tries).action, Action::retry);

  EXPECT_EQ(judge(PieceKind::read, command, completion, tries).errno_value, EIO);
}

}  // namespace
}  // namespace vjbod::initiator
