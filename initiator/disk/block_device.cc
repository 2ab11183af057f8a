// SPDX-License-Identifier: Apache-2.0
#include "initiator/disk/block_device.h"

namespace vjbod::initiator {

const char* name_of(BlockOperation operation) {
  switch (operation) {
    case BlockOperation::read: return "read";
    case BlockOperation::write: return "write";
    case BlockOperation::flush: return "flush";
    case BlockOperation::trim: return "trim";
    case BlockOperation::write_zeroes: return "write_zeroes";
    case BlockOperation::cache: return "cache";
  }
  return "unknown";
}

}  // namespace vjbod::initiator
