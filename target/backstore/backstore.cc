// SPDX-License-Identifier: Apache-2.0
#include "target/backstore/backstore.h"

namespace vjbod::backstore {

const char* name_of(OpKind kind) {
  switch (kind) {
    case OpKind::read: return "read";
    case OpKind::write: return "write";
    case OpKind::flush: return "flush";
    case OpKind::unmap: return "unmap";
    case OpKind::write_zeroes: return "write_zeroes";
  }
  return "unknown";
}

}  // namespace vjbod::backstore
