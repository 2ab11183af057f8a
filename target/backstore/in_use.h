// SPDX-License-Identifier: Apache-2.0
// Words for people about who has a file or device open, as far as the kernel tells.
#pragma once

#include <string>

#include <sys/types.h>

namespace vjbod::backstore {

// Of the exclusive lock on a file: "vjbod-targetd (process 1234)", or "another process".
std::string lock_holder(dev_t device, ino_t inode);

// Of a block device: "mounted on /srv", "used by md0, dm-3", or "another program".
std::string device_user(dev_t device);

}  // namespace vjbod::backstore
