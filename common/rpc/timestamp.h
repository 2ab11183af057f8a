// SPDX-License-Identifier: Apache-2.0
// Wall time in messages.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include "common/runtime/clock.h"

namespace vjbod::rpc {

google::protobuf::Timestamp to_timestamp(WallTime time);
WallTime from_timestamp(const google::protobuf::Timestamp& timestamp);

}  // namespace vjbod::rpc
