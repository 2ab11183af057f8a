// SPDX-License-Identifier: Apache-2.0
#include "common/transport/iser/message_pool.h"

namespace vjbod::transport {

Status MessagePool::add(rdma::Domain& domain, size_t small_count, size_t large_count) {
  const struct {
    size_t count;
    size_t data_bytes;
    std::vector<uint32_t>& free;
  } kinds[] = {{small_count, small_data_bytes, free_small_},
               {large_count, data_bytes_max_, free_large_}};
  for (const auto& kind : kinds) {
    if (kind.count == 0) continue;
    const size_t before = memory_.size();
    Status added = memory_.add(domain, kind.count, message_header_bytes + kind.data_bytes);
    if (!added) return added;
    for (size_t number = memory_.size(); number-- > before;)
      kind.free.push_back(static_cast<uint32_t>(number));
  }
  return {};
}

std::optional<MessagePool::Slot> MessagePool::take_from(std::vector<uint32_t>& free) {
  if (free.empty()) return std::nullopt;
  const uint32_t number = free.back();
  free.pop_back();
  return Slot{number, memory_[number].memory, memory_[number].local_key};
}

std::optional<MessagePool::Slot> MessagePool::take(size_t data_bytes) {
  if (data_bytes <= small_data_bytes)
    if (auto slot = take_from(free_small_)) return slot;
  return take_from(free_large_);
}

void MessagePool::give_back(uint32_t number) {
  (is_small(number) ? free_small_ : free_large_).push_back(number);
}

void MessagePool::clear() {
  free_small_.clear();
  free_large_.clear();
  memory_.clear();
}

}  // namespace vjbod::transport
