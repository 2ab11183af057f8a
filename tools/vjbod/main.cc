// SPDX-License-Identifier: Apache-2.0
// The command line of VJBOD. Talks to the daemons of this box over their Unix sockets; the manual
// is vjbod.8.md.
#include <cstdlib>
#include <iostream>

#include <CLI/CLI.hpp>

#include "common/config/values.h"
#include "common/rpc/errc.h"
#include "common/rpc/status_map.h"
#include "tools/vjbod/commands.h"
#include "tools/vjbod/help.h"
#include "tools/vjbod/options.h"

namespace vjbod::cli {

int exit_code(const Error& error) {
  if (error.code.category() == rpc::error_category()) return error.code.value();
  return static_cast<int>(rpc::kind_of(error.code));
}

namespace {

std::string socket_path(const char* variable, const char* fallback) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? value : fallback;
}

int run(int argc, char** argv) {
  Options options;
  options.host_socket = socket_path("VJBOD_HOST_SOCKET", "/run/vjbod/host.sock");
  options.target_socket = socket_path("VJBOD_TARGET_SOCKET", "/run/vjbod/target.sock");

  CLI::App app{
      "Disks of a remote NAS as local disks: pair boxes, create and attach disks, show their "
      "state.",
      "vjbod"};
  app.footer(
      "Examples:\n"
      "  vjbod pair 10.0.0.2                    on the host, with the token that `vjbod target "
      "pair-token` printed there\n"
      "  vjbod create disk1 --peer nas2 --pool tank --size 1T\n"
      "  vjbod list\n"
      "The manual is vjbod(8).");
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", std::string("vjbod ") + VJBOD_VERSION);
  std::string output = "table", columns, timeout, progress;
  app.add_option("-o,--output", output, "table or json")->check(CLI::IsMember({"table", "json"}));
  app.add_flag("-H,--no-header", options.no_header, "No header, tabs between fields");
  app.add_option("--columns", columns, "Columns to show, separated by commas");
  app.add_option("--timeout", timeout, "How long to wait, such as 30s (default: 60s)");
  app.add_flag("--no-wait", options.no_wait, "Do not wait for the end of long work");
  app.add_flag("-y,--yes", options.yes, "Do not ask before something is destroyed");
  app.add_option("--progress", progress, "json: one object per step on stderr")
      ->check(CLI::IsMember({"json"}));
  app.add_option("--host-socket", options.host_socket, "Control socket of vjbod-hostd");
  app.add_option("--target-socket", options.target_socket, "Control socket of vjbod-targetd");

  Registry registry(options);
  add_target_commands(app, registry);
  add_peer_commands(app, registry);
  add_disk_commands(app, registry);

  add_footers(app, "");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::cerr << "vjbod: " << error.what() << "; see vjbod --help\n";
    return static_cast<int>(rpc::Errc::usage);
  }
  options.output = output == "json" ? OutputFormat::json : OutputFormat::table;
  if (progress == "json") options.progress = ProgressFormat::json;
  for (size_t begin = 0; begin < columns.size();) {
    const size_t end = std::min(columns.find(',', begin), columns.size());
    if (end > begin) options.columns.push_back(columns.substr(begin, end - begin));
    begin = end + 1;
  }
  if (!timeout.empty()) {
    auto parsed = config::parse_duration(timeout);
    if (!parsed) {
      std::cerr << "vjbod: --timeout: " << parsed.error().text << "\n";
      return static_cast<int>(rpc::Errc::usage);
    }
    options.timeout = *parsed;
  }
  const Outcome outcome = registry.run();
  if (outcome) return *outcome;
  std::cerr << "vjbod: " << outcome.error().text << "\n";
  return exit_code(outcome.error());
}

}  // namespace
}  // namespace vjbod::cli

int main(int argc, char** argv) {
  return vjbod::cli::run(argc, argv);
}
