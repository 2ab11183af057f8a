// SPDX-License-Identifier: Apache-2.0
// Which start of this machine it is. Waits for /proc; any thread.
#pragma once

#include <string>

namespace vjbod {

inline constexpr size_t boot_id_bytes = 36;  // the text form of a UUID

// The id of the running kernel, which is another one after each start of the machine. Empty when
// there is none to be read.
std::string kernel_boot_id(const std::string& path = "/proc/sys/kernel/random/boot_id");

}  // namespace vjbod
