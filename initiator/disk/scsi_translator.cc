// SPDX-License-Identifier: Apache-2.0
#include "initiator/disk/scsi_translator.h"

#include <algorithm>
#include <cerrno>
#include <span>

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/scsi/cdb.h"
#include "common/scsi/status.h"

namespace vjbod::initiator {

namespace {

using Action = Verdict::Action;

constexpr Verdict failure(int errno_value) {
  return {Action::fail, errno_value, {}, false};
}

Verdict retry_trouble(Tries& tries) {
  if (tries.troubles >= retries_max) return failure(EIO);
  ++tries.troubles;
  return {Action::retry};
}

Verdict busy(Tries& tries) {
  const Duration delay = busy_delay_first * (1 << std::min(tries.delays, 6u));
  ++tries.delays;
  return {Action::retry_later, 0, std::min(delay, busy_delay_longest), false};
}

Verdict judge_illegal_request(PieceKind kind, scsi::AdditionalSense additional, Tries& tries) {
  if (additional == scsi::asc::logical_unit_not_supported) {
    if (tries.troubles >= retries_max) return failure(EIO);
    ++tries.troubles;
    return {Action::probe};
  }
  const bool refused = additional == scsi::asc::invalid_operation_code ||
                       additional == scsi::asc::invalid_field_in_cdb ||
                       additional == scsi::asc::invalid_field_in_parameter_list;
  if (refused && kind == PieceKind::zero) return {Action::fall_back};
  if (refused && kind == PieceKind::trim) return failure(EOPNOTSUPP);
  if (refused && kind == PieceKind::flush) return failure(EOPNOTSUPP);
  return failure(EIO);
}

Verdict judge_unit_attention(scsi::AdditionalSense additional, Tries& tries) {
  if (tries.attentions >= unit_attentions_max) return failure(EIO);
  ++tries.attentions;
  // After a reset or a power loss it may be another LUN, or one whose cache is lost.
  constexpr uint8_t reset_occurred = 0x29;  // SPC-4 table E.1, with every qualifier
  if (additional.code == reset_occurred || additional == scsi::asc::capacity_changed ||
      additional == scsi::asc::inquiry_data_changed ||
      additional == scsi::asc::reported_luns_changed ||
      additional == scsi::asc::mode_parameters_changed)
    return {Action::probe};
  return {Action::retry};
}

Verdict judge_check_condition(PieceKind kind, ConstBytes bytes, Tries& tries) {
  const Result<scsi::Sense> sense = scsi::parse_sense(bytes);
  if (!sense) return retry_trouble(tries);
  if (sense->deferred) {
    // About an earlier command, which was answered with success; this one was not executed
    // (SPC-4 4.5.6).
    Verdict verdict = retry_trouble(tries);
    verdict.writes_lost = true;
    return verdict;
  }
  switch (sense->key) {
    case scsi::SenseKey::recovered_error:
    case scsi::SenseKey::completed: return {Action::done};
    case scsi::SenseKey::not_ready:
      if (sense->additional.code != scsi::asc::not_ready.code || tries.delays >= not_ready_max)
        return failure(EIO);
      ++tries.delays;
      return {Action::retry_later, 0, not_ready_delay, false};
    case scsi::SenseKey::illegal_request:
      return judge_illegal_request(kind, sense->additional, tries);
    case scsi::SenseKey::unit_attention: return judge_unit_attention(sense->additional, tries);
    case scsi::SenseKey::data_protect:
      return failure(sense->additional == scsi::asc::space_allocation_failed ? ENOSPC : EROFS);
    case scsi::SenseKey::volume_overflow: return failure(ENOSPC);
    case scsi::SenseKey::no_sense:
    case scsi::SenseKey::aborted_command: return retry_trouble(tries);
    case scsi::SenseKey::medium_error:
    case scsi::SenseKey::hardware_error:
    case scsi::SenseKey::blank_check:
    case scsi::SenseKey::vendor_specific:
    case scsi::SenseKey::copy_aborted:
    case scsi::SenseKey::miscompare: return failure(EIO);
  }
  return failure(EIO);
}

// A success that did not move all the data is none: bytes would be missing without a word. (Of
// commands with a parameter list or a pattern, targets report residuals at their own discretion.)
bool moved_everything(PieceKind kind, const ChannelCommand& command,
                      const ChannelCompletion& completion) {
  if (kind == PieceKind::trim || kind == PieceKind::zero || kind == PieceKind::flush) return true;
  const size_t expected = command.read.size() + command.write.size();
  return completion.data_bytes == expected && !completion.underflow && !completion.overflow;
}

}  // namespace

uint32_t translate(const Piece& piece, const TargetFeatures& features, Bytes data, ConstBytes zeros,
                   Bytes parameters, ChannelCommand& command) {
  command.write = {};
  command.read = {};
  if (piece.kind == PieceKind::flush) {
    command.cdb = scsi::encode(scsi::SynchronizeCache{});
    return static_cast<uint32_t>(piece.blocks);
  }
  VJBOD_CHECK(!piece.finished());
  const uint64_t lba = piece.lba + piece.blocks_done;
  const uint64_t rest = piece.blocks - piece.blocks_done;
  const uint64_t block = features.block_bytes;
  const auto up_to = [rest](uint64_t limit) {
    return static_cast<uint32_t>(
        std::min({rest, std::max<uint64_t>(limit, 1), uint64_t{UINT32_MAX}}));
  };
  const uint64_t data_begin = piece.request_offset_bytes + piece.blocks_done * block;

  switch (piece.kind) {
    case PieceKind::read: {
      const uint32_t blocks = up_to(features.transfer_blocks_max);
      command.cdb = scsi::encode(
          scsi::Read{.size = scsi::smallest_cdb(lba, blocks), .lba = lba, .blocks = blocks});
      command.read = data.subspan(data_begin, blocks * block);
      return blocks;
    }
    case PieceKind::write: {
      const uint32_t blocks = up_to(features.transfer_blocks_max);
      command.cdb = scsi::encode(scsi::Write{.size = scsi::smallest_cdb(lba, blocks),
                                             .force_unit_access = piece.force_unit_access,
                                             .lba = lba,
                                             .blocks = blocks});
      command.write = data.subspan(data_begin, blocks * block);
      return blocks;
    }
    case PieceKind::trim: {
      if (!features.unmap) {
        const uint32_t blocks = up_to(features.write_same_blocks_max);
        command.cdb = scsi::encode(scsi::WriteSame{.unmap = true,
                                                   .no_data_out = features.write_same_no_data,
                                                   .lba = lba,
                                                   .blocks = blocks});
        if (!features.write_same_no_data) command.write = zeros.first(block);
        return blocks;
      }
      const uint32_t blocks = up_to(features.unmap_blocks_max);
      const scsi::UnmapRange range{lba, blocks};
      ByteWriter writer(parameters);
      scsi::build_unmap_list(std::span(&range, 1), writer);
      VJBOD_CHECK(writer.ok());
      command.cdb = scsi::encode(
          scsi::Unmap{.parameter_list_length = static_cast<uint16_t>(writer.written())});
      command.write = writer.result();
      return blocks;
    }
    case PieceKind::zero: {
      VJBOD_CHECK(features.write_same);
      const uint32_t blocks = up_to(features.write_same_blocks_max);
      command.cdb =
          scsi::encode(scsi::WriteSame{.unmap = piece.may_unmap && features.write_same_unmaps,
                                       .no_data_out = features.write_same_no_data,
                                       .lba = lba,
                                       .blocks = blocks});
      if (!features.write_same_no_data) command.write = zeros.first(block);
      return blocks;
    }
    case PieceKind::zero_data: {
      const uint32_t blocks =
          up_to(std::min<uint64_t>(features.transfer_blocks_max, zeros.size() / block));
      command.cdb = scsi::encode(scsi::Write{.size = scsi::smallest_cdb(lba, blocks),
                                             .force_unit_access = piece.force_unit_access,
                                             .lba = lba,
                                             .blocks = blocks});
      command.write = zeros.first(blocks * block);
      return blocks;
    }
    case PieceKind::flush: break;
  }
  VJBOD_CHECK(false, "unknown kind of piece");
  return 0;
}

Verdict judge(PieceKind kind, const ChannelCommand& command, const ChannelCompletion& completion,
              Tries& tries) {
  if (completion.target_failure) return retry_trouble(tries);
  Verdict verdict;
  switch (static_cast<scsi::Status>(completion.status)) {
    case scsi::Status::good:
    case scsi::Status::condition_met: break;
    case scsi::Status::check_condition:
      verdict = judge_check_condition(kind, completion.sense, tries);
      break;
    case scsi::Status::busy:
    case scsi::Status::task_set_full:
    case scsi::Status::aca_active: return busy(tries);
    case scsi::Status::reservation_conflict: return failure(EBADE);
    case scsi::Status::task_aborted: return retry_trouble(tries);
    default: return failure(EIO);
  }
  if (verdict.action == Action::done && !moved_everything(kind, command, completion))
    return retry_trouble(tries);
  return verdict;
}

std::string describe(const ChannelCompletion& completion) {
  if (completion.target_failure) return "the target failed to carry out the command";
  const auto status = static_cast<scsi::Status>(completion.status);
  std::string text = scsi::name_of(status);
  if (status == scsi::Status::check_condition) {
    const Result<scsi::Sense> sense = scsi::parse_sense(completion.sense);
    text += sense ? ", " + scsi::describe(*sense) : ", with sense data that cannot be read";
  } else if (status == scsi::Status::good) {
    text += fmt::format(", but only {} bytes were moved", completion.data_bytes);
  }
  return text;
}

}  // namespace vjbod::initiator
