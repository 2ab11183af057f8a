// SPDX-License-Identifier: Apache-2.0
// Operation codes and service actions of the commands we know (SPC-4 annex F.3, SBC-3 5.1).
#pragma once

#include <cstdint>

namespace vjbod::scsi {

enum class Opcode : uint8_t {
  test_unit_ready = 0x00,
  request_sense = 0x03,
  read_6 = 0x08,
  write_6 = 0x0a,
  inquiry = 0x12,
  mode_sense_6 = 0x1a,
  start_stop_unit = 0x1b,
  read_capacity_10 = 0x25,
  read_10 = 0x28,
  write_10 = 0x2a,
  verify_10 = 0x2f,
  synchronize_cache_10 = 0x35,
  write_same_10 = 0x41,
  unmap = 0x42,
  mode_sense_10 = 0x5a,
  read_16 = 0x88,
  write_16 = 0x8a,
  verify_16 = 0x8f,
  synchronize_cache_16 = 0x91,
  write_same_16 = 0x93,
  service_action_in_16 = 0x9e,
  report_luns = 0xa0,
  maintenance_in = 0xa3,
  read_12 = 0xa8,
  write_12 = 0xaa,
  verify_12 = 0xaf,
};

inline constexpr uint8_t service_action_read_capacity_16 = 0x10;  // of service_action_in_16
inline constexpr uint8_t service_action_report_opcodes = 0x0c;    // of maintenance_in

}  // namespace vjbod::scsi
