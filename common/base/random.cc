// SPDX-License-Identifier: Apache-2.0
#include "common/base/random.h"

#include <cerrno>

#include <sys/random.h>

#include "common/base/check.h"

namespace vjbod {

void fill_secure_random(Bytes bytes) {
  while (!bytes.empty()) {
    ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    VJBOD_CHECK(got > 0, "getrandom failed with errno {}", errno);
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
}

}  // namespace vjbod
