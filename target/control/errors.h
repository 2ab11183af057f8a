// SPDX-License-Identifier: Apache-2.0
// Errors of the target's lower layers in the terms of the control channel.
#pragma once

#include "common/base/result.h"
#include "common/rpc/errc.h"

namespace vjbod::target {

// Gives an error of a backstore or a pool the kind that a script can act on; others stay as they
// are.
Error control_error(Error error);

}  // namespace vjbod::target
