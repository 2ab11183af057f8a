// SPDX-License-Identifier: Apache-2.0
// vjbod-hostd: attaches remote LUNs and exports them as local block devices. The manual is
// vjbod-hostd.8.md.
#include <csignal>
#include <iostream>

#include <CLI/CLI.hpp>

#include "common/base/log.h"
#include "common/rpc/status_map.h"
#include "common/rpc/version.h"
#include "common/runtime/signals.h"
#include "initiator/config.h"
#include "initiator/control/host_daemon.h"

int main(int argc, char** argv) {
  using namespace vjbod;
  CLI::App app{
      "The host daemon of VJBOD: attaches remote LUNs, exports them as local block devices.",
      "vjbod-hostd"};
  app.footer(
      "Example:\n  vjbod-hostd --config /etc/vjbod/host.toml\nThe manual is vjbod-hostd(8).");
  std::string config_path = "/etc/vjbod/host.toml", state_dir, control_socket, log_level;
  bool check_only = false;
  app.add_option("--config", config_path, "Configuration file (default /etc/vjbod/host.toml)");
  app.add_option("--state-dir", state_dir, "Instead of state_dir of the configuration");
  app.add_option("--control-socket", control_socket,
                 "Instead of control_socket of the configuration");
  app.add_option("--log-level", log_level, "trace, debug, info, warn, error or off");
  app.add_flag("--check-config", check_only, "Check the configuration and exit");
  app.set_version_flag("--version", std::string("vjbod-hostd ") + rpc::program_version());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::cerr << "vjbod-hostd: " << error.what() << "; see vjbod-hostd --help\n";
    return 2;
  }
  auto config = initiator::read_host_config(config_path);
  if (!config) {
    std::cerr << "vjbod-hostd: " << config.error().text << "\n";
    return 2;
  }
  if (!state_dir.empty()) config->state_dir = state_dir;
  if (!control_socket.empty()) config->control_socket = control_socket;
  if (!log_level.empty()) config->log_level = log_level;
  if (auto logging = start_logging(config->log_level); !logging) {
    std::cerr << "vjbod-hostd: " << logging.error().text << "\n";
    return 2;
  }
  if (check_only) {
    std::cout << config_path << " is fine\n";
    return 0;
  }
  block_signals({SIGTERM, SIGINT, SIGHUP});
  if (auto ran = initiator::run_host_daemon(*config); !ran) {
    std::cerr << "vjbod-hostd: " << ran.error().text << "\n";
    return rpc::exit_status(ran.error());
  }
  return 0;
}
