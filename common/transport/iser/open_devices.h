// SPDX-License-Identifier: Apache-2.0
// Which RDMA devices a daemon has open. librdmacm opens a device when it is first used and keeps it
// open for good. The kernel takes a software device away only once nobody has it open, and
// whoever asked for that waits. So a device that was removed is let go here after its last user.
#pragma once

#include <map>
#include <mutex>
#include <set>

struct ibv_context;

namespace vjbod::transport::rdma {

// Called from all threads that use RDMA; nothing in here waits for long.
class OpenDevices {
 public:
  // `user` (an id of the connection manager, a domain) has `device` in use until done(); null: not
  // yet. May be said again.
  void uses(const void* user, ibv_context* device);
  // After everything that the user had of the device is destroyed.
  void done(const void* user);
  // The kernel is taking the device away.
  void removed(ibv_context* device);

 private:
  bool used(const ibv_context* device) const;

  std::mutex mutex_;
  std::map<const void*, ibv_context*> users_;
  std::set<ibv_context*> removed_;
};

}  // namespace vjbod::transport::rdma
