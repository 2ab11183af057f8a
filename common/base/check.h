// SPDX-License-Identifier: Apache-2.0
// Bugs abort loudly, in every build. Not for errors of peers, people or the system: those are
// values (result.h).
#pragma once

#include <string_view>

#include <fmt/core.h>

namespace vjbod::detail {
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view message);
}  // namespace vjbod::detail

// VJBOD_CHECK(condition) or VJBOD_CHECK(condition, "format {}", args...)
#define VJBOD_CHECK(condition, ...)                                 \
  do {                                                              \
    if (!(condition)) [[unlikely]] {                                \
      ::vjbod::detail::check_failed(__FILE__, __LINE__, #condition, \
                                    ::fmt::format("" __VA_ARGS__)); \
    }                                                               \
  } while (false)
