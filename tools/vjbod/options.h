// SPDX-License-Identifier: Apache-2.0
// What every command takes, and what it gives back to main.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/runtime/clock.h"

namespace vjbod::cli {

enum class OutputFormat { table, json };
enum class ProgressFormat { automatic, json };  // automatic: lines, when stderr is a terminal

struct Options {
  OutputFormat output = OutputFormat::table;
  bool no_header = false;            // tabs between fields and no first line, for scripts
  std::vector<std::string> columns;  // empty: the command's own
  std::optional<Duration> timeout;
  bool no_wait = false;
  bool yes = false;
  ProgressFormat progress = ProgressFormat::automatic;
  std::string host_socket, target_socket;
};

// The exit code of an error: its number if it is one of rpc::Errc, else 1.
int exit_code(const Error& error);

}  // namespace vjbod::cli
