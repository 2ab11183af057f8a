// SPDX-License-Identifier: Apache-2.0
#include "tests/support/memory_block_device.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"

namespace vjbod::test {

using initiator::BlockGeometry;
using initiator::BlockOperation;
using initiator::BlockRequest;

MemoryBlockDevice::MemoryBlockDevice(Reactor& reactor, const BlockGeometry& geometry,
                                     bool geometry_known)
    : reactor_(reactor), geometry_(geometry), geometry_known_(geometry_known) {
  content_.resize(geometry.size_bytes);
}

void MemoryBlockDevice::submit(BlockRequest& request) {
  VJBOD_CHECK(reactor_.on_owner_thread());
  VJBOD_CHECK(request.owner != nullptr);
  if (request.operation != BlockOperation::flush) {
    VJBOD_CHECK(request.length_bytes > 0 && request.offset_bytes % geometry_.block_bytes == 0 &&
                request.length_bytes % geometry_.block_bytes == 0 &&
                request.offset_bytes + request.length_bytes <= content_.size());
  }
  if (request.operation == BlockOperation::read || request.operation == BlockOperation::write) {
    VJBOD_CHECK(request.data.size() == request.length_bytes);
  }
  if (on_submit) on_submit(request);
  waiting_.push_back(request);
  ++waiting_count_;
  if (!holding_) reactor_.defer(*this);
}

void MemoryBlockDevice::add_observer(initiator::BlockDeviceObserver& observer) {
  observers_.push_back(&observer);
}

void MemoryBlockDevice::remove_observer(initiator::BlockDeviceObserver& observer) {
  std::erase(observers_, &observer);
}

void MemoryBlockDevice::announce(const BlockGeometry& geometry) {
  geometry_ = geometry;
  geometry_known_ = true;
  content_.resize(geometry.size_bytes);
  for (auto* observer : observers_) observer->on_geometry(geometry_);
}

void MemoryBlockDevice::release(int errno_value) {
  holding_ = false;
  if (errno_value != 0) fail_next(errno_value, waiting_count_);
  reactor_.defer(*this);
}

void MemoryBlockDevice::fail_next(int errno_value, size_t count) {
  failure_ = errno_value;
  failures_left_ = count;
}

void MemoryBlockDevice::run_deferred() {
  if (holding_) return;
  IntrusiveList<BlockRequest> batch;
  batch.append(waiting_);
  while (!batch.empty()) {
    BlockRequest& request = batch.pop_front();
    --waiting_count_;
    int errno_value = 0;
    if (failures_left_ > 0) {
      --failures_left_;
      errno_value = failure_;
    } else {
      errno_value = execute(request);
    }
    request.owner->on_request_done(request, errno_value);
  }
}

int MemoryBlockDevice::execute(BlockRequest& request) {
  std::byte* at = content_.data() + request.offset_bytes;
  switch (request.operation) {
    case BlockOperation::read: std::memcpy(request.data.data(), at, request.data.size()); break;
    case BlockOperation::write: std::memcpy(at, request.data.data(), request.data.size()); break;
    case BlockOperation::trim:
    case BlockOperation::write_zeroes: std::memset(at, 0, request.length_bytes); break;
    case BlockOperation::flush:
    case BlockOperation::cache: break;
  }
  return 0;
}

BlockGeometry full_geometry(uint64_t size_bytes, uint32_t block_bytes) {
  BlockGeometry geometry;
  geometry.size_bytes = size_bytes;
  geometry.block_bytes = block_bytes;
  geometry.physical_block_bytes = 4096;
  geometry.trim = true;
  geometry.write_zeroes = true;
  geometry.fast_write_zeroes = true;
  return geometry;
}

}  // namespace vjbod::test
