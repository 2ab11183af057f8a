// SPDX-License-Identifier: Apache-2.0
// Words for people about who has a file or device open, as far as the kernel tells.
#pragma once

#include <chrono>
#include <string>

#include <sys/types.h>

namespace vjbod::backstore {

// After a daemon was killed, the kernel finishes what it still does for it, and holds file and lock
// until then: also what keeps an old write from landing after a new daemon's. So a start waits this
// long for a user that is no living process.
inline constexpr std::chrono::milliseconds predecessor_wait_max{3000};
inline constexpr std::chrono::milliseconds predecessor_wait_step{20};

// Whether the exclusive lock on a file is held by a process that lives.
bool locked_by_living(dev_t device, ino_t inode);

// Of the exclusive lock on a file: "vjbod-targetd (process 1234)", or "another process".
std::string lock_holder(dev_t device, ino_t inode);

// Of a block device: "mounted on /srv", "used by md0, dm-3", or empty when the kernel does not
// tell.
std::string device_user(dev_t device);

}  // namespace vjbod::backstore
