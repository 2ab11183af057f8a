// SPDX-License-Identifier: Apache-2.0
// target.toml as plain values, checked. Every key is described in vjbod-targetd.8.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/iscsi/chap.h"
#include "target/backstore/config.h"
#include "target/iscsi/server_view.h"

namespace vjbod::target {

struct PortalConfig {
  std::string address;  // numeric
  uint16_t port = 3260;
  std::vector<std::string> transports = {"iscsi", "iser"};
};

struct PoolConfig {
  enum class Kind {
    directory,  // LUNs are files in it
    block,      // one LUN, on the whole of a block device
    memory,     // LUNs that end with the daemon: for tests and benchmarks
  };
  std::string name;
  std::string path;  // of the directory or the device; empty for memory
  Kind kind = Kind::directory;
};
const char* name_of(PoolConfig::Kind kind);

struct TargetConfig {
  static constexpr size_t portals_max = 32;
  static constexpr size_t pools_max = 64;
  static constexpr size_t shards_max = 64;
  static constexpr size_t shards_auto_max = 8;
  // Below this a shard could not carry out a few large I/Os at once.
  static constexpr uint64_t shard_memory_bytes_min = uint64_t{16} << 20;

  std::string name;  // default: the host's name, made to fit the grammar
  std::string state_dir = "/var/lib/vjbod/target";
  std::string control_socket = "/run/vjbod/target.sock";
  std::string iqn_prefix = "iqn.2026-11.io.vjbod";
  std::string log_level = "info";
  std::string control_listen = "[::]:7443";
  std::vector<PortalConfig> portals;  // default: [::]:3260
  std::vector<PoolConfig> pools;

  ServerLimits limits;
  size_t shards = 0;                                   // 0: one per CPU, at most shards_auto_max
  bool pin_shards = false;                             // each to a CPU of its own
  uint64_t buffer_memory_bytes = uint64_t{512} << 20;  // of all shards together
  std::vector<iscsi::ChapAlgorithm> chap_algorithms{iscsi::chap_algorithms_by_strength.begin(),
                                                    iscsi::chap_algorithms_by_strength.end()};
  backstore::CacheMode cache = backstore::CacheMode::page_cache;
  bool use_io_uring = true;
  bool allow_test_faults = false;  // SetFault of the control channel
};

// Of a LUN: "iqn.2026-11.io.vjbod:nas2.disk1".
std::string target_iqn(const TargetConfig& config, std::string_view lun_name);

Result<TargetConfig> load_config(const std::string& path);
Result<TargetConfig> parse_config(std::string_view text, const std::string& file_name);

}  // namespace vjbod::target
