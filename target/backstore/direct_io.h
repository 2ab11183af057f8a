// SPDX-License-Identifier: Apache-2.0
// Switches an open medium to O_DIRECT, with the alignment that this file and kernel ask for.
#pragma once

#include "target/backstore/config.h"
#include "target/backstore/medium.h"

namespace vjbod::backstore {

// Clears O_NONBLOCK, and sets O_DIRECT if config.cache asks for it. Refuses a LUN whose blocks are
// smaller than what the file allows to write directly: part of such a block could only be written
// by reading it first, and a neighbour's write in between would be lost.
Status set_direct_io(Medium& medium, const BackstoreConfig& config);

}  // namespace vjbod::backstore
