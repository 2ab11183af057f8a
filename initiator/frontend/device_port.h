// SPDX-License-Identifier: Apache-2.0
// One connection's way to the disk. On the disk's own shard a submit is a plain call; from another
// shard requests cross in batches and come back in batches (common/runtime/handover.h). The port
// belongs to the connection and lives on its shard.
#pragma once

#include <memory>

#include "common/runtime/handover.h"
#include "initiator/disk/block_device.h"

namespace vjbod::initiator {

struct PortRequest : BlockRequest, HandoverNode {
  int errno_value = 0;  // the port's: the result on its way back
};

class DevicePortOwner {
 public:
  // Once per submitted request, on the port's thread, never from inside submit() or flush().
  virtual void on_port_done(PortRequest& request, int errno_value) = 0;

 protected:
  ~DevicePortOwner() = default;
};

class DevicePort {
 public:
  // For a connection on the disk's own reactor.
  DevicePort(BlockDevice& device, DevicePortOwner& owner);
  // For a connection on `here`; `home` is the disk's reactor. Destroy it as described at Handover,
  // for both directions: every request has come back, then a post went to `home`, then one to
  // `here`.
  DevicePort(BlockDevice& device, AsioReactor& home, AsioReactor& here, DevicePortOwner& owner);
  ~DevicePort();

  void submit(PortRequest& request);
  // Sends off what was submitted; call once after a row of submits.
  void flush();

 private:
  class Local;
  class Crossing;
  std::unique_ptr<Local> local_;
  std::unique_ptr<Crossing> crossing_;
};

}  // namespace vjbod::initiator
