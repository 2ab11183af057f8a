// SPDX-License-Identifier: Apache-2.0
#include "common/transport/data_mover.h"

namespace vjbod::transport {

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::iscsi: return "iSCSI";
    case Kind::iser: return "iSER";
    case Kind::memory: return "memory";
  }
  return "unknown";
}

}  // namespace vjbod::transport
