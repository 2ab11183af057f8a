// SPDX-License-Identifier: Apache-2.0
// Reading configuration files (TOML) strictly: an unknown key, a wrong type or a value out of range
// is an error that names file, line and reason, and the daemon does not start.
//
//   Result<ConfigReader> file = ConfigReader::open(path);
//   ConfigTable root = file->root();
//   root.text("name", config.name);
//   for (ConfigTable& portal : root.tables("portal")) { portal.text("address", ...); }
//   return file->finish();   // the first error, or the first key that nobody asked for
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/runtime/clock.h"

namespace vjbod::config {

enum class ConfigErrc { unreadable = 1, bad_syntax, unknown_key, wrong_type, bad_value };
const std::error_category& config_error_category();
inline std::error_code make_error_code(ConfigErrc code) {
  return {static_cast<int>(code), config_error_category()};
}

class ConfigReader;

// One table of the file. Each call takes a key when it is there (and marks it known), else leaves
// `value` alone and returns false. Errors are kept in the reader; the first one counts.
class ConfigTable {
 public:
  bool text(std::string_view key, std::string& value);
  bool flag(std::string_view key, bool& value);
  bool number(std::string_view key, uint64_t minimum, uint64_t maximum, uint64_t& value);
  template <typename Integer>
  bool number(std::string_view key, uint64_t minimum, uint64_t maximum, Integer& value) {
    uint64_t wide = static_cast<uint64_t>(value);
    if (!number(key, minimum, maximum, wide)) return false;
    value = static_cast<Integer>(wide);
    return true;
  }
  // A size as text ("10G") or a number of bytes.
  bool size(std::string_view key, uint64_t minimum, uint64_t maximum, uint64_t& bytes);
  // A duration as text ("30s", "10m") or a number of seconds.
  bool duration(std::string_view key, Duration minimum, Duration maximum, Duration& value);
  // An array of texts.
  bool texts(std::string_view key, std::vector<std::string>& values);
  // [key]: nothing when it is not there.
  std::optional<ConfigTable> table(std::string_view key);
  // [[key]]
  std::vector<ConfigTable> tables(std::string_view key);

  // Reports a value that was read and found wrong: "file:line: key: reason".
  void reject(std::string_view key, std::string_view reason);
  // Where the table begins: "file:line".
  std::string where() const;

 private:
  friend class ConfigReader;
  struct Impl;
  explicit ConfigTable(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

class ConfigReader {
 public:
  static constexpr size_t bytes_max = 1024 * 1024;

  static Result<ConfigReader> open(const std::string& path);
  // `name` stands for the file in errors.
  static Result<ConfigReader> parse(std::string_view text, std::string name);

  ConfigTable root();
  Status finish();

 private:
  friend class ConfigTable;
  struct Impl;
  explicit ConfigReader(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace vjbod::config

template <>
struct std::is_error_code_enum<vjbod::config::ConfigErrc> : std::true_type {};
