// SPDX-License-Identifier: Apache-2.0
#include "common/iscsi/status_sequence.h"

#include <type_traits>

namespace vjbod::iscsi {

bool uses_stat_sn(const Pdu& pdu) {
  return std::visit(
      []<typename T>(const T& p) {
        if constexpr (std::is_same_v<T, DataIn>) {
          return p.has_status;
        } else if constexpr (std::is_same_v<T, NopIn>) {
          return p.itt != reserved_tag;
        } else if constexpr (std::is_same_v<T, R2t>) {
          return false;
        } else {
          return requires {
            p.stat_sn;
          };
        }
      },
      pdu);
}

}  // namespace vjbod::iscsi
