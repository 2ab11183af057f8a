// SPDX-License-Identifier: Apache-2.0
// Standard INQUIRY data (SPC-4 6.6.2) and the vital product data pages that we serve and read
// (SPC-4 7.8, SBC-3 6.6). Built by the target, parsed by the initiator from a peer it does not
// trust: text comes out printable, lengths are checked. Pure; any thread; not for the data path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/scsi/errc.h"

namespace vjbod::scsi {

enum class VpdPage : uint8_t {
  supported_pages = 0x00,
  unit_serial_number = 0x80,
  device_identification = 0x83,
  block_limits = 0xb0,
  block_characteristics = 0xb1,
  logical_block_provisioning = 0xb2,
};

inline constexpr uint8_t device_type_disk = 0x00;
inline constexpr uint8_t device_type_none = 0x1f;
inline constexpr uint8_t qualifier_connected = 0;
inline constexpr uint8_t qualifier_not_capable = 3;  // no logical unit can be there

// First byte of everything INQUIRY returns.
struct Peripheral {
  uint8_t qualifier = qualifier_connected;
  uint8_t device_type = device_type_disk;
  bool operator==(const Peripheral&) const = default;
};

struct StandardInquiry {
  Peripheral peripheral;
  bool removable = false;
  uint8_t version = 6;                        // SPC-4
  bool protect = false;                       // protection information
  bool task_set = true;                       // CMDQUE
  std::string vendor;                         // at most 8 characters
  std::string product;                        // at most 16
  std::string revision;                       // at most 4
  std::vector<uint16_t> version_descriptors;  // at most 8
  bool operator==(const StandardInquiry&) const = default;
};
inline constexpr size_t standard_inquiry_bytes = 96;
void build(const StandardInquiry& inquiry, ByteWriter& out);
Result<StandardInquiry> parse_standard_inquiry(ConstBytes bytes);

// Page 00.
void build_supported_pages(Peripheral peripheral, const std::vector<uint8_t>& pages,
                           ByteWriter& out);
Result<std::vector<uint8_t>> parse_supported_pages(ConstBytes bytes);

// Page 80.
void build_unit_serial_number(Peripheral peripheral, const std::string& serial, ByteWriter& out);
Result<std::string> parse_unit_serial_number(ConstBytes bytes);

// Page 83 (SPC-4 7.8.6).
enum class DesignatorType : uint8_t {
  vendor_specific = 0,
  t10_vendor_id = 1,
  eui64 = 2,
  naa = 3,
  relative_target_port = 4,
  target_port_group = 5,
  logical_unit_group = 6,
  md5 = 7,
  scsi_name_string = 8,
};
struct Designator {
  DesignatorType type = DesignatorType::vendor_specific;
  uint8_t association = 0;  // 0 logical unit, 1 target port, 2 target device
  uint8_t code_set = 1;     // 1 binary, 2 ASCII, 3 UTF-8
  std::vector<std::byte> bytes;
  bool operator==(const Designator&) const = default;
};
void build_device_identification(Peripheral peripheral, const std::vector<Designator>& designators,
                                 ByteWriter& out);
Result<std::vector<Designator>> parse_device_identification(ConstBytes bytes);
// The NAA of the logical unit as "naa.<hexadecimal digits>", the longest one if there are several;
// nothing without one.
std::optional<std::string> naa_of(const std::vector<Designator>& designators);

// Page B0 (SBC-3 6.6.3). Zero means "not reported" or "no limit", as the standard has it.
struct BlockLimits {
  bool write_same_no_zero = false;  // WSNZ: a length of zero is refused
  uint16_t optimal_transfer_granularity_blocks = 0;
  uint32_t maximum_transfer_blocks = 0;
  uint32_t optimal_transfer_blocks = 0;
  uint32_t maximum_unmap_blocks = 0;
  uint32_t maximum_unmap_descriptors = 0;
  uint32_t optimal_unmap_granularity_blocks = 0;
  std::optional<uint32_t> unmap_granularity_alignment_blocks{};
  uint64_t maximum_write_same_blocks = 0;
  bool operator==(const BlockLimits&) const = default;
};
void build(Peripheral peripheral, const BlockLimits& limits, ByteWriter& out);
Result<BlockLimits> parse_block_limits(ConstBytes bytes);

// Page B1 (SBC-3 6.6.2).
struct BlockCharacteristics {
  uint16_t medium_rotation_rate = 0;  // 0 not reported, 1 does not rotate, else per minute
  bool operator==(const BlockCharacteristics&) const = default;
};
void build(Peripheral peripheral, const BlockCharacteristics& characteristics, ByteWriter& out);
Result<BlockCharacteristics> parse_block_characteristics(ConstBytes bytes);

// Page B2 (SBC-3 6.6.4).
enum class ProvisioningType : uint8_t { not_reported = 0, resource = 1, thin = 2 };
struct LogicalBlockProvisioning {
  bool unmap = false;                // LBPU
  bool write_same_16_unmap = false;  // LBPWS
  bool write_same_10_unmap = false;  // LBPWS10
  bool reads_zeros = false;          // LBPRZ
  bool anchor_supported = false;     // ANC_SUP
  ProvisioningType type = ProvisioningType::not_reported;
  bool operator==(const LogicalBlockProvisioning&) const = default;
};
void build(Peripheral peripheral, const LogicalBlockProvisioning& provisioning, ByteWriter& out);
Result<LogicalBlockProvisioning> parse_logical_block_provisioning(ConstBytes bytes);

}  // namespace vjbod::scsi
