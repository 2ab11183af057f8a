// SPDX-License-Identifier: Apache-2.0
// What people type and see: questions, secrets from files, progress. Blocking; the command line
// only.
#pragma once

#include <string>
#include <string_view>

#include "common/base/result.h"
#include "tools/vjbod/options.h"

namespace vjbod::cli {

inline constexpr size_t secret_file_bytes_max = 4096;

// One line without echo from the terminal, or from stdin when that is none. `prompt` goes to
// stderr.
Result<std::string> ask_secret(std::string_view prompt);
// The first line of a file; "-" is stdin. Refused when others may read the file.
Result<std::string> read_secret_file(const std::string& path);
// Asks "… [y/N]" on the terminal. Without a terminal, or when --yes is missing there, an error that
// says so.
Status confirm(const Options& options, std::string_view question);
// A step of long work, on stderr: as a line when that is a terminal, as JSON with --progress=json.
void show_progress(const Options& options, std::string_view step, std::string_view text);

}  // namespace vjbod::cli
