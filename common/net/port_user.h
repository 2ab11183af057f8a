// SPDX-License-Identifier: Apache-2.0
// Who listens on a TCP port of this box, as words for an error: "tgtd (process 123)", or "another
// program" where the kernel does not tell. Any thread; reads /proc.
#pragma once

#include <cstdint>
#include <string>

namespace vjbod::net {

std::string port_user(uint16_t port);

}  // namespace vjbod::net
