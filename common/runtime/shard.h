// SPDX-License-Identifier: Apache-2.0
// A thread with one reactor: everything that a session touches lives on one shard, so nothing there
// needs a lock. This file (with shard.cc) is the only one that creates threads for the data path.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/runtime/asio_reactor.h"
#include "common/runtime/buffer_pool.h"

namespace vjbod {

class Shard {
 public:
  // `name` becomes the thread's name (15 characters are shown). `core`: the CPU to stay on, or -1.
  Shard(std::string name, int core, uint64_t random_seed, size_t buffer_memory_max_bytes);
  // Stops and joins. Everything that lives on the shard must have been taken down before.
  ~Shard();

  AsioReactor& reactor() { return reactor_; }
  BufferPool& buffers() { return buffers_; }

 private:
  AsioReactor reactor_;
  BufferPool buffers_;
  std::thread thread_;
};

}  // namespace vjbod
