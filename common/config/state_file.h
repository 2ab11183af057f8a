// SPDX-License-Identifier: Apache-2.0
// A daemon's state on disk: one JSON file that is always whole. Every save writes a new file,
// syncs it, renames it over the old one and syncs the folder, so that after a power cut the old or
// the new state is there and nothing else. Mode 0600: it holds secrets.
// Blocking calls; control plane only.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "common/base/result.h"

namespace vjbod::config {

enum class StateErrc {
  damaged = 1,    // not JSON, or not of the expected shape
  newer_version,  // written by a newer program
  locked,         // another daemon uses the state directory
  not_usable,     // the directory cannot be made, read or written
};
const std::error_category& state_error_category();
inline std::error_code make_error_code(StateErrc code) {
  return {static_cast<int>(code), state_error_category()};
}

// A state directory that this process holds alone, for as long as the object lives.
class StateDirectory {
 public:
  // Makes the directory (mode 0700), and the folders above it, when they are missing. Fails when
  // another process holds it, or when it cannot be written.
  static Result<StateDirectory> open(std::string path);
  StateDirectory(StateDirectory&& other) noexcept;
  StateDirectory& operator=(StateDirectory&& other) noexcept;
  ~StateDirectory();

  const std::string& path() const { return path_; }

 private:
  StateDirectory(std::string path, int lock_fd) : path_(std::move(path)), lock_fd_(lock_fd) {}
  std::string path_;
  int lock_fd_ = -1;
};

// Replaces the file `directory`/`name` as a whole, durably, with mode 0600.
Status write_file_atomically(const std::string& directory, std::string_view name,
                             std::string_view content);
// Not longer than `bytes_max`. A missing file is the error std::errc::no_such_file_or_directory.
Result<std::string> read_file(const std::string& path, size_t bytes_max);

class StateFile {
 public:
  static constexpr size_t bytes_max = 16 * 1024 * 1024;

  // `version`: what this program writes, and the newest it can read.
  StateFile(std::string directory, std::string name, int version)
      : directory_(std::move(directory)), name_(std::move(name)), version_(version) {}

  // An empty object when there is no file yet. A damaged or newer file is refused and left as it
  // is; the error says how to go on. The object's "version" tells which one it is.
  Result<nlohmann::json> load() const;
  // Sets "version" and saves. On an error the file on disk is the one before.
  Status save(nlohmann::json state) const;

  std::string path() const { return directory_ + "/" + name_; }
  // For the caller that finds the content wrong: an error that names the file and the way on.
  Error damaged(std::string_view what) const;

 private:
  std::string directory_, name_;
  int version_;
};

}  // namespace vjbod::config

template <>
struct std::is_error_code_enum<vjbod::config::StateErrc> : std::true_type {};
