// SPDX-License-Identifier: Apache-2.0
// host.toml: what a person decides about this box before the daemon starts. The manual is
// vjbod-hostd.8.md.
#pragma once

#include <string>

#include "common/base/result.h"
#include "common/runtime/clock.h"

namespace vjbod::initiator {

struct HostConfig {
  std::string name;  // default: the host's name
  std::string state_dir = "/var/lib/vjbod/host";
  std::string control_socket = "/run/vjbod/host.sock";
  std::string initiator_iqn;  // default: made once and kept in the state directory
  std::string log_level = "info";
  struct Export {
    std::string backend = "auto";
    std::string socket_dir = "/run/vjbod/nbd";
  } exports;
  struct Limits {
    uint32_t shards = 0;                                 // 0: one for each CPU, at most shards_max
    uint64_t buffer_memory_bytes = uint64_t{256} << 20;  // per shard, at the most
    uint32_t disks_max = 256;
    Duration connect_timeout = std::chrono::seconds(3);
    Duration keepalive_idle = std::chrono::seconds(15);
    Duration keepalive_timeout = std::chrono::seconds(15);
  } limits;
};

inline constexpr uint32_t shards_max = 64;

// Reads and checks the file; an error names file, line and reason.
Result<HostConfig> read_host_config(const std::string& path);

}  // namespace vjbod::initiator
