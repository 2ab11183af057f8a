// SPDX-License-Identifier: Apache-2.0
#include "common/transport/iser/open_devices.h"

#include <algorithm>

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <unistd.h>

namespace vjbod::transport::rdma {

namespace {

// The context itself stays librdmacm's, which closes it some day; its descriptors lead nowhere
// from here on.
void let_go(const ibv_context& device) {
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0) return;
  dup3(nowhere, device.cmd_fd, O_CLOEXEC);
  dup3(nowhere, device.async_fd, O_CLOEXEC);
  close(nowhere);
}

}  // namespace

bool OpenDevices::used(const ibv_context* device) const {
  return std::any_of(users_.begin(), users_.end(),
                     [device](const auto& user) { return user.second == device; });
}

void OpenDevices::uses(const void* user, ibv_context* device) {
  if (device == nullptr) return;
  const std::lock_guard lock(mutex_);
  users_[user] = device;
}

void OpenDevices::done(const void* user) {
  const std::lock_guard lock(mutex_);
  const auto found = users_.find(user);
  if (found == users_.end()) return;
  ibv_context* const device = found->second;
  users_.erase(found);
  if (removed_.contains(device) && !used(device)) {
    removed_.erase(device);
    let_go(*device);
  }
}

void OpenDevices::removed(ibv_context* device) {
  if (device == nullptr) return;
  const std::lock_guard lock(mutex_);
  // Without users nobody would let it go, and it may be closed already.
  if (used(device)) removed_.insert(device);
}

}  // namespace vjbod::transport::rdma
