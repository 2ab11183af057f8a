// SPDX-License-Identifier: Apache-2.0
// What stands below the help of each command: examples, and the options that every command takes.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace vjbod::cli {

// To all commands below `app`, whose own words so far are `path`, such as "target lun".
void add_footers(CLI::App& app, const std::string& path);

}  // namespace vjbod::cli
