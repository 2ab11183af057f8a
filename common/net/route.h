// SPDX-License-Identifier: Apache-2.0
// By which of its addresses this box goes somewhere. Any thread; does system calls, sends nothing.
#pragma once

#include <string>

namespace vjbod::net {

// `interface`: bound to it; empty: any. Empty when the kernel knows no way.
std::string source_address_towards(const std::string& address, const std::string& interface);

}  // namespace vjbod::net
