// SPDX-License-Identifier: Apache-2.0
// Additional sense codes with qualifiers that we send or act on (SPC-4 annex F.2).
#pragma once

#include <cstdint>

namespace vjbod::scsi {

struct AdditionalSense {
  uint8_t code = 0;
  uint8_t qualifier = 0;
  bool operator==(const AdditionalSense&) const = default;
};

// "LOGICAL BLOCK ADDRESS OUT OF RANGE"; "unknown" for what is not in the list below.
const char* name_of(AdditionalSense additional);

namespace asc {

inline constexpr AdditionalSense none{0x00, 0x00};
inline constexpr AdditionalSense not_ready{0x04, 0x00};
inline constexpr AdditionalSense becoming_ready{0x04, 0x01};
inline constexpr AdditionalSense unit_failure{0x3e, 0x01};
inline constexpr AdditionalSense write_error{0x0c, 0x00};
inline constexpr AdditionalSense invalid_field_in_information_unit{0x0e, 0x03};
inline constexpr AdditionalSense unrecovered_read_error{0x11, 0x00};
inline constexpr AdditionalSense parameter_list_length_error{0x1a, 0x00};
inline constexpr AdditionalSense miscompare_during_verify{0x1d, 0x00};
inline constexpr AdditionalSense invalid_operation_code{0x20, 0x00};
inline constexpr AdditionalSense lba_out_of_range{0x21, 0x00};
inline constexpr AdditionalSense invalid_field_in_cdb{0x24, 0x00};
inline constexpr AdditionalSense logical_unit_not_supported{0x25, 0x00};
inline constexpr AdditionalSense invalid_field_in_parameter_list{0x26, 0x00};
inline constexpr AdditionalSense write_protected{0x27, 0x00};
inline constexpr AdditionalSense space_allocation_failed{0x27, 0x07};
inline constexpr AdditionalSense power_on_or_reset{0x29, 0x00};
inline constexpr AdditionalSense power_on{0x29, 0x01};
inline constexpr AdditionalSense scsi_bus_reset{0x29, 0x02};
inline constexpr AdditionalSense device_reset{0x29, 0x03};
inline constexpr AdditionalSense nexus_loss{0x29, 0x07};
inline constexpr AdditionalSense mode_parameters_changed{0x2a, 0x01};
inline constexpr AdditionalSense capacity_changed{0x2a, 0x09};
inline constexpr AdditionalSense commands_cleared_by_another{0x2f, 0x00};
inline constexpr AdditionalSense saving_parameters_not_supported{0x39, 0x00};
inline constexpr AdditionalSense medium_not_present{0x3a, 0x00};
inline constexpr AdditionalSense inquiry_data_changed{0x3f, 0x03};
inline constexpr AdditionalSense reported_luns_changed{0x3f, 0x0e};
inline constexpr AdditionalSense internal_target_failure{0x44, 0x00};
inline constexpr AdditionalSense invalid_message_error{0x49, 0x00};

}  // namespace asc

}  // namespace vjbod::scsi
