// SPDX-License-Identifier: Apache-2.0
// What can be wrong with SCSI bytes: a CDB we do not know, or data that is cut short or
// contradicts itself. What a device server makes of it (sense data) is decided above.
#pragma once

#include <system_error>

namespace vjbod::scsi {

enum class Errc {
  unknown_opcode = 1,
  unknown_service_action,
  short_cdb,
  short_data,  // fewer bytes than the format's fixed part needs
  bad_data,    // lengths or fields inside that contradict each other
};

const std::error_category& error_category();
inline std::error_code make_error_code(Errc code) {
  return {static_cast<int>(code), error_category()};
}

}  // namespace vjbod::scsi

template <>
struct std::is_error_code_enum<vjbod::scsi::Errc> : std::true_type {};
