// SPDX-License-Identifier: Apache-2.0
// Why a disk is `failed` or `stale`, as the kind of error that becomes a person's exit code. Pure.
#pragma once

#include "common/rpc/errc.h"
#include "initiator/disk/disk_status.h"

namespace vjbod::initiator {

rpc::Errc refusal_kind(const DiskStatus& status);

}  // namespace vjbod::initiator
