// SPDX-License-Identifier: Apache-2.0
// vjbod-targetd: command line, configuration, signals; everything else is in target/control.
#include <cstdio>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "common/base/log.h"
#include "common/rpc/grpc_log.h"
#include "common/rpc/status_map.h"
#include "common/rpc/version.h"
#include "common/runtime/signals.h"
#include "target/control/config.h"
#include "target/control/target_daemon.h"

namespace {

constexpr int exit_usage = 2;

struct Options {
  std::string config = "/etc/vjbod/target.toml";
  std::string state_dir, control_socket, log_level;  // empty: as configured
  bool check_config = false;
};

void describe(CLI::App& app, Options& options) {
  app.set_version_flag("--version", fmt::format("vjbod-targetd {}", vjbod::rpc::program_version()),
                       "Print the version and exit");
  app.add_option("--config", options.config, "Configuration file")->capture_default_str();
  app.add_option("--state-dir", options.state_dir, "Where the daemon keeps its state");
  app.add_option("--control-socket", options.control_socket,
                 "Unix socket that `vjbod target` talks to");
  app.add_option("--log-level", options.log_level, "How much is logged")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}));
  app.add_flag("--check-config", options.check_config,
               "Say whether the configuration is correct, and exit");
  app.footer(
      "Example:\n"
      "  vjbod-targetd --config ./target.toml --state-dir ./state --control-socket ./target.sock\n"
      "\n"
      "It stays in the foreground and logs to stderr. SIGTERM stops it, SIGHUP reads the\n"
      "configuration again. See vjbod-targetd(8).");
}

int failed(const vjbod::Error& error, int code) {
  fmt::print(stderr, "vjbod-targetd: {}\n", error.text);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  vjbod::block_signals({SIGTERM, SIGINT, SIGHUP});
  Options options;
  CLI::App app("Serves the LUNs of this box over iSCSI", "vjbod-targetd");
  describe(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_usage;
  }
  vjbod::Result<vjbod::target::TargetConfig> config = vjbod::target::load_config(options.config);
  if (!config) return failed(config.error(), exit_usage);
  if (!options.state_dir.empty()) config->state_dir = options.state_dir;
  if (!options.control_socket.empty()) config->control_socket = options.control_socket;
  if (!options.log_level.empty()) config->log_level = options.log_level;
  if (options.check_config) {
    fmt::print("{} is correct\n", options.config);
    return 0;
  }
  if (vjbod::Status logging = vjbod::start_logging(config->log_level); !logging)
    return failed(logging.error(), exit_usage);
  vjbod::rpc::forward_grpc_log();
  vjbod::target::TargetDaemon daemon(std::move(*config), options.config);
  if (vjbod::Status ran = daemon.run(); !ran)
    return failed(ran.error(), vjbod::rpc::exit_status(ran.error()));
  return 0;
}
