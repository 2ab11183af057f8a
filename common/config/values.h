// SPDX-License-Identifier: Apache-2.0
// The grammars that people type: names, sizes, durations, addresses with ports. Pure. Errors
// describe the input without repeating bytes that could upset a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/runtime/clock.h"

namespace vjbod::config {

// Names of boxes, LUNs, disks and pools: [a-z0-9][a-z0-9-]{0,62}. `what` begins the sentence: "LUN
// name".
inline constexpr size_t name_bytes_max = 63;
bool is_name(std::string_view text);
Status check_name(std::string_view what, std::string_view text);
// Of a network interface, as the kernel takes them: 1 to 15 bytes without blanks, '/' and ':'.
Status check_interface_name(std::string_view what, std::string_view text);

// Bytes, or K, M, G, T, P as powers of 1024: "10G", "4096". Lower case is taken too.
Result<uint64_t> parse_size(std::string_view text);
// The shortest exact form: 10737418240 is "10G", 512 is "512".
std::string size_text(uint64_t bytes);
// A positive multiple of the block size (512 or 4096) and not beyond 2^62.
Status check_lun_size(uint64_t size_bytes, uint32_t block_size);

// "90s", "10m", "2h", "1d", "500ms", or plain seconds.
Result<Duration> parse_duration(std::string_view text);

struct HostPort {
  std::string host;   // without brackets
  uint16_t port = 0;  // the default when none was given
};
// "10.0.0.2", "10.0.0.2:7443", "[::]:7443", "[fe80::1%eth0]:7443", "nas2:7443", "fe80::1". The host
// is an address or a name of letters, digits, dots and hyphens.
Result<HostPort> parse_host_port(std::string_view text, uint16_t default_port);
std::string host_port_text(std::string_view host, uint16_t port);  // brackets where needed
bool is_numeric_address(std::string_view text);                    // IPv4 or IPv6, without zone

// Only printable text of another box or person: control characters and bytes that are not UTF-8
// become '?', and it is cut after `bytes_max`. For logs and messages.
std::string printable(std::string_view text, size_t bytes_max = 256);

}  // namespace vjbod::config
