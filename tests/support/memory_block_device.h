// SPDX-License-Identifier: Apache-2.0
// A disk in RAM for tests of frontends: answers at the end of the turn, or when the test says so.
// On its reactor's thread, except where stated.
#pragma once

#include <functional>
#include <vector>

#include "initiator/disk/block_device.h"

namespace vjbod::test {

class MemoryBlockDevice final : public initiator::BlockDevice, private Deferred {
 public:
  MemoryBlockDevice(Reactor& reactor, const initiator::BlockGeometry& geometry,
                    bool geometry_known = true);

  Reactor& reactor() override { return reactor_; }
  bool geometry_known() const override { return geometry_known_; }
  initiator::BlockGeometry geometry() const override { return geometry_; }
  void submit(initiator::BlockRequest& request) override;
  void add_observer(initiator::BlockDeviceObserver& observer) override;
  void remove_observer(initiator::BlockDeviceObserver& observer) override;

  // The first probe, or a grown disk.
  void announce(const initiator::BlockGeometry& geometry);

  // Holds what is submitted until release(); as a target that does not answer.
  void hold() { holding_ = true; }
  // Does and answers what is held, with `errno_value` instead when it is not 0.
  void release(int errno_value = 0);
  size_t waiting_count() const { return waiting_count_; }
  // Answers the next `count` requests with an error, not doing them.
  void fail_next(int errno_value, size_t count = 1);

  // Sees every request when it is submitted.
  std::function<void(const initiator::BlockRequest&)> on_submit;
  std::vector<std::byte>& content() { return content_; }

 private:
  void run_deferred() override;
  int execute(initiator::BlockRequest& request);

  Reactor& reactor_;
  initiator::BlockGeometry geometry_;
  bool geometry_known_;
  std::vector<std::byte> content_;
  std::vector<initiator::BlockDeviceObserver*> observers_;
  IntrusiveList<initiator::BlockRequest> waiting_;
  size_t waiting_count_ = 0;
  bool holding_ = false;
  int failure_ = 0;
  size_t failures_left_ = 0;
};

// A disk with everything on: trim, write zeroes (fast), FUA.
initiator::BlockGeometry full_geometry(uint64_t size_bytes, uint32_t block_bytes = 512);

}  // namespace vjbod::test
