// SPDX-License-Identifier: Apache-2.0
// Command descriptor blocks as values: one struct per command, whatever the length of its CDB.
// decode_cdb() for the target, encode() for the initiator; reserved bits are ignored on receipt and
// zero when sent. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/scsi/errc.h"
#include "common/scsi/opcode.h"

namespace vjbod::scsi {

using Cdb = std::array<std::byte, 16>;  // shorter ones are padded with zeros

enum class CdbSize : uint8_t { six = 6, ten = 10, twelve = 12, sixteen = 16 };

// Length of a CDB by its operation code's group (SPC-4 4.3.2); 0 for the groups of variable length,
// vendors and reserved ones.
size_t cdb_bytes(std::byte opcode);
// The shortest of 10 and 16 that can name the range.
CdbSize smallest_cdb(uint64_t lba, uint32_t blocks);

struct TestUnitReady {  // SPC-4 6.47
  bool operator==(const TestUnitReady&) const = default;
};

struct RequestSense {  // SPC-4 6.39
  bool descriptor_format = false;
  uint8_t allocation_length = 252;
  bool operator==(const RequestSense&) const = default;
};

struct Inquiry {  // SPC-4 6.6
  bool vital_product_data = false;
  uint8_t page_code = 0;
  uint16_t allocation_length = 0;
  bool operator==(const Inquiry&) const = default;
};

struct ModeSense {  // SPC-4 6.13, 6.14; six or ten
  CdbSize size = CdbSize::six;
  bool disable_block_descriptors = false;
  uint8_t page_control = 0;  // 0 current, 1 changeable, 2 default, 3 saved
  uint8_t page_code = 0;
  uint8_t subpage_code = 0;
  uint16_t allocation_length = 0;
  bool operator==(const ModeSense&) const = default;
};

struct StartStopUnit {  // SBC-3 5.25
  bool immediate = false;
  uint8_t power_condition = 0;
  bool no_flush = false;
  bool load_eject = false;
  bool start = false;
  bool operator==(const StartStopUnit&) const = default;
};

struct ReadCapacity10 {  // SBC-3 5.15
  bool operator==(const ReadCapacity10&) const = default;
};

struct ReadCapacity16 {  // SBC-3 5.16
  uint32_t allocation_length = 32;
  bool operator==(const ReadCapacity16&) const = default;
};

struct ReportLuns {  // SPC-4 6.33
  uint8_t select_report = 0;
  uint32_t allocation_length = 0;
  bool operator==(const ReportLuns&) const = default;
};

struct ReportSupportedOperationCodes {  // SPC-4 6.35
  bool return_timeouts = false;
  uint8_t reporting_options = 0;
  uint8_t requested_opcode = 0;
  uint16_t requested_service_action = 0;
  uint32_t allocation_length = 0;
  bool operator==(const ReportSupportedOperationCodes&) const = default;
};

struct Read {  // SBC-3 5.10 to 5.13
  CdbSize size = CdbSize::ten;
  uint8_t protect = 0;  // RDPROTECT; like DPO and FUA not in the six-byte CDB
  bool disable_page_out = false;
  bool force_unit_access = false;
  uint64_t lba = 0;
  uint32_t blocks = 0;
  bool operator==(const Read&) const = default;
};

struct Write {  // SBC-3 5.32 to 5.35
  CdbSize size = CdbSize::ten;
  uint8_t protect = 0;  // WRPROTECT
  bool disable_page_out = false;
  bool force_unit_access = false;
  uint64_t lba = 0;
  uint32_t blocks = 0;
  bool operator==(const Write&) const = default;
};

struct Verify {  // SBC-3 5.29 to 5.31
  CdbSize size = CdbSize::ten;
  uint8_t protect = 0;  // VRPROTECT
  bool disable_page_out = false;
  uint8_t byte_check = 0;  // 0 medium only, 1 against the data, 3 against one block of data
  uint64_t lba = 0;
  uint32_t blocks = 0;
  bool operator==(const Verify&) const = default;
};

struct SynchronizeCache {  // SBC-3 5.26, 5.27
  CdbSize size = CdbSize::ten;
  bool immediate = false;
  uint64_t lba = 0;
  uint32_t blocks = 0;  // 0: to the end
  bool operator==(const SynchronizeCache&) const = default;
};

struct WriteSame {  // SBC-3 5.40, 5.41
  CdbSize size = CdbSize::sixteen;
  uint8_t protect = 0;
  bool anchor = false;
  bool unmap = false;
  bool no_data_out = false;  // NDOB: zeros, and no data follows; sixteen only
  uint64_t lba = 0;
  uint32_t blocks = 0;
  bool operator==(const WriteSame&) const = default;
};

struct Unmap {  // SBC-3 5.28
  bool anchor = false;
  uint16_t parameter_list_length = 0;
  bool operator==(const Unmap&) const = default;
};

using Command =
    std::variant<TestUnitReady, RequestSense, Inquiry, ModeSense, StartStopUnit, ReadCapacity10,
                 ReadCapacity16, ReportLuns, ReportSupportedOperationCodes, Read, Write, Verify,
                 SynchronizeCache, WriteSame, Unmap>;

Result<Command> decode_cdb(ConstBytes cdb);

// A field that does not fit the chosen CDB size is a bug of the caller.
Cdb encode(const TestUnitReady& command);
Cdb encode(const RequestSense& command);
Cdb encode(const Inquiry& command);
Cdb encode(const ModeSense& command);
Cdb encode(const StartStopUnit& command);
Cdb encode(const ReadCapacity10& command);
Cdb encode(const ReadCapacity16& command);
Cdb encode(const ReportLuns& command);
Cdb encode(const ReportSupportedOperationCodes& command);
Cdb encode(const Read& command);
Cdb encode(const Write& command);
Cdb encode(const Verify& command);
Cdb encode(const SynchronizeCache& command);
Cdb encode(const WriteSame& command);
Cdb encode(const Unmap& command);
inline Cdb encode(const Command& command) {
  return std::visit([](const auto& one) { return encode(one); }, command);
}

}  // namespace vjbod::scsi
