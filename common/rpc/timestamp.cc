// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/timestamp.h"

#include <algorithm>

namespace vjbod::rpc {

namespace {
// What a timestamp may hold (years 1 to 9999) and WallTime can (1678 to 2261, in nanoseconds).
constexpr int64_t seconds_max = 9'000'000'000;
}  // namespace

google::protobuf::Timestamp to_timestamp(WallTime time) {
  auto since_epoch = time.time_since_epoch();
  auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
  google::protobuf::Timestamp result;
  result.set_seconds(seconds.count());
  result.set_nanos(static_cast<int32_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch - seconds).count()));
  return result;
}

WallTime from_timestamp(const google::protobuf::Timestamp& timestamp) {
  std::chrono::seconds seconds(std::clamp(timestamp.seconds(), -seconds_max, seconds_max));
  std::chrono::nanoseconds nanos(std::clamp(timestamp.nanos(), 0, 999'999'999));
  return WallTime(std::chrono::duration_cast<WallTime::duration>(seconds + nanos));
}

}  // namespace vjbod::rpc
