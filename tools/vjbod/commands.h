// SPDX-License-Identifier: Apache-2.0
// The commands: each function adds its subcommands to the parser and what they do to the registry.
#pragma once

#include <functional>
#include <vector>

#include <CLI/CLI.hpp>

#include "common/base/result.h"
#include "tools/vjbod/options.h"

namespace vjbod::cli {

// What a command came to: an exit code, or an error that main prints and turns into one.
using Outcome = Result<int>;

class Registry {
 public:
  explicit Registry(const Options& options) : options_(options) {}
  const Options& options() const { return options_; }
  void add(CLI::App* command, std::function<Outcome()> run) {
    commands_.push_back({command, std::move(run)});
  }
  // Runs the innermost command that was given.
  Outcome run() const {
    for (const auto& [command, work] : commands_) {
      if (command->parsed()) return work();
    }
    return fail(std::make_error_code(std::errc::invalid_argument), "no command was given");
  }

 private:
  const Options& options_;
  std::vector<std::pair<CLI::App*, std::function<Outcome()>>> commands_;
};

void add_target_commands(CLI::App& app, Registry& registry);  // vjbod target …
void add_peer_commands(
    CLI::App& app, Registry& registry);  // pair, peers, unpair, interfaces, preflight, pools, luns
void add_disk_commands(CLI::App& app, Registry& registry);  // create … wait

}  // namespace vjbod::cli
