// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/wall_clock.h"

#include <ctime>

namespace vjbod {

WallTime wall_now() {
  return std::chrono::system_clock::now();
}

std::string rfc3339(WallTime time) {
  std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

Result<WallTime> parse_rfc3339(std::string_view text) {
  std::tm parts{};
  std::string copy(text);
  const char* end = strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (end == nullptr || *end != '\0' || copy.size() != text.size())
    return fail(std::make_error_code(std::errc::invalid_argument),
                "not a time like 2026-11-03T08:15:30Z");
  return std::chrono::system_clock::from_time_t(timegm(&parts));
}

}  // namespace vjbod
