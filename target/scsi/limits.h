// SPDX-License-Identifier: Apache-2.0
// What one command may ask for. The block limits page tells initiators the same numbers, so that
// they split larger requests instead of failing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "target/scsi/task.h"

namespace vjbod::scsi {

// READ, WRITE, VERIFY: 32 MiB in blocks of 512 bytes. Larger than the task's buffer: it goes
// through in pieces. Conformance suites take it for granted that so many blocks go at once.
inline constexpr uint32_t transfer_blocks_max = 65536;
// What goes in one piece, and is fastest.
inline constexpr uint64_t transfer_bytes_optimal = task_buffer_bytes_max;
// WRITE SAME: a nonzero pattern is written out, which must end before initiators lose patience.
inline constexpr uint64_t write_same_bytes_max = uint64_t{1} << 30;
// UNMAP. Conformance suites take more for a mistake unless it is "no limit".
inline constexpr uint32_t unmap_blocks_max = 1U << 20;
inline constexpr uint32_t unmap_descriptors_max = 256;
// WRITE SAME of zeros and UNMAP reach the backstore in pieces of this size, so that an abort takes
// effect in between.
inline constexpr uint64_t zeroing_piece_bytes = uint64_t{64} << 20;

}  // namespace vjbod::scsi
