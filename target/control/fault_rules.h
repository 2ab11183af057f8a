// SPDX-License-Identifier: Apache-2.0
// SetFault requests as rules of the backstore filters.
#pragma once

#include "common/base/result.h"
#include "target/backstore/factory.h"
#include "vjbod/v1/target.pb.h"

namespace vjbod::target {

Status apply_fault(const v1::SetFaultRequest& request, const backstore::FilterControls& controls);

}  // namespace vjbod::target
