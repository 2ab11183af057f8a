// SPDX-License-Identifier: Apache-2.0
// Sense data (SPC-4 4.5): why a command failed, as a value; built and parsed in the fixed and the
// descriptor format. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/scsi/asc.h"
#include "common/scsi/errc.h"

namespace vjbod::scsi {

enum class SenseKey : uint8_t {
  no_sense = 0x0,
  recovered_error = 0x1,
  not_ready = 0x2,
  medium_error = 0x3,
  hardware_error = 0x4,
  illegal_request = 0x5,
  unit_attention = 0x6,
  data_protect = 0x7,
  blank_check = 0x8,
  vendor_specific = 0x9,
  copy_aborted = 0xa,
  aborted_command = 0xb,
  volume_overflow = 0xd,
  miscompare = 0xe,
  completed = 0xf,
};
const char* name_of(SenseKey key);  // "ILLEGAL REQUEST"

// The field at fault of an ILLEGAL REQUEST (SPC-4 4.5.2.4.2).
struct FieldPointer {
  bool in_cdb = true;  // else in the parameter data
  uint16_t byte = 0;
  std::optional<uint8_t> bit{};  // the field's most significant bit, 7 to 0
  bool operator==(const FieldPointer&) const = default;
};

struct Sense {
  SenseKey key = SenseKey::no_sense;
  AdditionalSense additional{};
  bool deferred = false;                  // about an earlier command
  std::optional<uint64_t> information{};  // the LBA at fault, where known
  std::optional<FieldPointer> field{};
  bool operator==(const Sense&) const = default;
};

inline constexpr size_t fixed_sense_bytes = 18;
inline constexpr size_t descriptor_sense_bytes_max = 8 + 12 + 8;

// Return how many bytes were written; `out` must have room. The fixed format cannot say an
// `information` above 32 bits and leaves it out.
size_t build_fixed_sense(const Sense& sense, Bytes out);
size_t build_descriptor_sense(const Sense& sense, Bytes out);

// Takes either format, also cut short after the additional sense code. Vendor formats are an error.
Result<Sense> parse_sense(ConstBytes bytes);

// "ILLEGAL REQUEST, LOGICAL BLOCK ADDRESS OUT OF RANGE (05/21/00)", for people.
std::string describe(const Sense& sense);

}  // namespace vjbod::scsi
