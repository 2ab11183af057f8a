// SPDX-License-Identifier: Apache-2.0
// What this program is, and whether it can talk to another box.
#pragma once

#include <string_view>

#include "common/base/result.h"
#include "vjbod/v1/common.pb.h"

namespace vjbod::rpc {

inline constexpr uint32_t protocol_major = 1;
inline constexpr uint32_t protocol_minor = 0;

const char* program_version();  // "0.1.0"
v1::VersionInfo our_version();
// Errc::version when the other box's major version is another one. `who`: "nas2", for the sentence.
Status check_version(const v1::VersionInfo& theirs, std::string_view who);

}  // namespace vjbod::rpc
