// SPDX-License-Identifier: Apache-2.0
// The target daemon put together. Threads: the main thread runs the control reactor, which may wait
// for the disk; each shard runs sessions and their I/O and never waits; shard 0 is also the home of
// the TargetServer. gRPC has its own threads, which only post to the control reactor.
#pragma once

#include <memory>
#include <string>

#include "common/base/result.h"
#include "target/control/config.h"

namespace vjbod::target {

class TargetDaemon {
 public:
  // After SIGTERM: what is under way is finished, sessions are logged out, and the process is over
  // within this time.
  static constexpr Duration stop_deadline = std::chrono::seconds(9);

  // `config_path`: read again at SIGHUP. SIGTERM, SIGINT and SIGHUP must be blocked.
  TargetDaemon(TargetConfig config, std::string config_path);
  ~TargetDaemon();

  // Serves until SIGTERM or SIGINT. The error says why it could not start.
  Status run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vjbod::target
