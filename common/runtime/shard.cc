// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/shard.h"

#include <csignal>
#include <utility>

#include <pthread.h>
#include <sched.h>

namespace vjbod {

Shard::Shard(std::string name, int core, uint64_t random_seed, size_t buffer_memory_max_bytes)
    : reactor_(random_seed), buffers_(buffer_memory_max_bytes, &reactor_.slabs()) {
  thread_ = std::thread([this, core, thread_name = std::move(name)] {
    pthread_setname_np(pthread_self(), thread_name.substr(0, 15).c_str());
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals belong to the main thread
    if (core >= 0) {
      cpu_set_t cpus;
      CPU_ZERO(&cpus);
      CPU_SET(static_cast<unsigned>(core), &cpus);
      // Failing to pin (a container with fewer CPUs) costs speed, not correctness.
      (void)pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
    }
    reactor_.run();
  });
}

Shard::~Shard() {
  reactor_.stop();
  thread_.join();
}

}  // namespace vjbod
