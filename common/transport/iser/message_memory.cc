// SPDX-License-Identifier: Apache-2.0
#include "common/transport/iser/message_memory.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/mman.h>

#include "common/base/check.h"
#include "common/transport/rdma_errc.h"

namespace vjbod::transport {

namespace {

constexpr size_t data_alignment_bytes = 512;
static_assert(message_header_bytes <= data_alignment_bytes);

constexpr size_t aligned(size_t bytes) {
  return (bytes + data_alignment_bytes - 1) / data_alignment_bytes * data_alignment_bytes;
}

}  // namespace

void MessageMemory::Unmap::operator()(std::byte* memory) const {
  munmap(memory, bytes);
}

Status MessageMemory::add(rdma::Domain& domain, size_t count, size_t message_bytes) {
  VJBOD_CHECK(message_bytes >= message_header_bytes);
  const size_t before_message = data_alignment_bytes - message_header_bytes;
  const size_t stride = aligned(before_message + message_bytes);
  const size_t bytes = count * stride;
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return fail(RdmaErrc::no_resources, "No {} bytes of memory for messages: {}.", bytes,
                std::strerror(errno));
  }
  Block block{{static_cast<std::byte*>(mapped), Unmap{bytes}}, nullptr};
  auto region = domain.register_memory({block.memory.get(), bytes}, rdma::Access::local);
  if (!region) return fail(std::move(region).error());
  block.region = std::move(*region);
  for (size_t i = 0; i < count; ++i) {
    slots_.push_back({{block.memory.get() + i * stride + before_message, message_bytes},
                      block.region->local_key()});
  }
  blocks_.push_back(std::move(block));
  return {};
}

void MessageMemory::clear() {
  slots_.clear();
  blocks_.clear();
}

}  // namespace vjbod::transport
