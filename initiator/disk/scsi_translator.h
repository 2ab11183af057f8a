// SPDX-License-Identifier: Apache-2.0
// Block operations to SCSI commands, and the answers to what to do next. Pure.
// All commands it makes are idempotent and name absolute blocks, so that any of them may be
// replayed after a reconnect.
#pragma once

#include <cstdint>

#include "common/base/bytes.h"
#include "common/runtime/clock.h"
#include "common/scsi/sense.h"
#include "common/scsi/unmap_list.h"
#include "initiator/session/scsi_channel.h"

namespace vjbod::initiator {

inline constexpr size_t unmap_list_of_one_bytes = scsi::unmap_list_bytes(1);

// What the target can do, beyond what frontends need to know; found by the probe. The defaults are
// what every disk can do.
struct TargetFeatures {
  uint32_t block_bytes = 512;
  uint32_t transfer_blocks_max = 128;  // READ, WRITE
  bool force_unit_access = false;      // DPOFUA
  bool unmap = false;                  // UNMAP
  uint32_t unmap_blocks_max = 0;
  bool write_same = false;          // WRITE SAME (16)
  bool write_same_unmaps = false;   // ... with the UNMAP bit, and unmapped blocks read as zeros
  bool write_same_no_data = false;  // ... without a data block (NDOB)
  uint32_t write_same_blocks_max = 0;

  bool operator==(const TargetFeatures&) const = default;
};

enum class PieceKind : uint8_t {
  read,
  write,
  trim,
  zero,       // WRITE SAME (16); only where the target has it
  zero_data,  // zeros over the wire
  flush,
};

// A range of blocks to be worked through by one or more commands, one after another.
struct Piece {
  PieceKind kind = PieceKind::read;
  bool force_unit_access = false;  // only with TargetFeatures::force_unit_access
  bool may_unmap = false;          // zero: a hole is as good
  uint64_t lba = 0;
  uint64_t blocks = 0;
  uint64_t blocks_done = 0;
  uint64_t request_offset_bytes = 0;  // where the piece begins in the request's data

  bool finished() const { return blocks_done >= blocks; }
};

// Fills in `cdb`, `write` and `read` of `command` for the next part of the piece, and returns how
// many blocks that covers (of a flush: the piece's). `data`: the request's memory. `zeros`: at
// least one block of zeros, as long as transfers of zeros shall be. `parameters`: of
// unmap_list_of_one_bytes, lent with the command.
uint32_t translate(const Piece& piece, const TargetFeatures& features, Bytes data, ConstBytes zeros,
                   Bytes parameters, ChannelCommand& command);

// What an answer means.
struct Verdict {
  enum class Action : uint8_t {
    done,
    retry,        // at once
    retry_later,  // after `delay`; the target is busy, so nothing else is sent meanwhile either
    fail,         // the request, with errno_value
    probe,        // the LUN may have changed: find out, then retry
    fall_back,    // the target has not got WRITE SAME after all: send zeros
  };
  Action action = Action::done;
  int errno_value = 0;
  Duration delay{};
  // The target reported the loss of something written earlier: no flush may claim success.
  bool writes_lost = false;
};

// Answers of one command that ask for a retry; the next is an error. Unit attentions are not the
// command's fault, and a target may have many to tell.
inline constexpr uint32_t retries_max = 5;
inline constexpr uint32_t unit_attentions_max = 32;
inline constexpr uint32_t not_ready_max = 60;  // with not_ready_delay between them
inline constexpr Duration not_ready_delay = std::chrono::seconds(1);
inline constexpr Duration busy_delay_first = std::chrono::milliseconds(50);  // doubles up to:
inline constexpr Duration busy_delay_longest = std::chrono::seconds(2);

// Answers to one command so far that asked for a retry, by kind: each kind has its own patience.
struct Tries {
  uint32_t troubles = 0;    // the command was aborted, or incomplete
  uint32_t attentions = 0;  // unit attentions
  uint32_t delays = 0;      // BUSY, TASK SET FULL, not ready: the caller bounds the time, too
};

// Counts the answer in `tries`.
Verdict judge(PieceKind kind, const ChannelCommand& command, const ChannelCompletion& completion,
              Tries& tries);

// "CHECK CONDITION, MEDIUM ERROR, UNRECOVERED READ ERROR (03/11/00)", for logs.
std::string describe(const ChannelCompletion& completion);

}  // namespace vjbod::initiator
