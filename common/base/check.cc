// SPDX-License-Identifier: Apache-2.0
#include "common/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace vjbod::detail {

void check_failed(const char* file, int line, const char* condition, std::string_view message) {
  fmt::print(stderr, "{}:{}: internal error: {} does not hold{}{}\n", file, line, condition,
             message.empty() ? "" : ": ", message);
  std::fflush(stderr);
  std::abort();
}

}  // namespace vjbod::detail
