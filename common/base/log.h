// SPDX-License-Identifier: Apache-2.0
// Logging to stderr, in the form the journal likes. Only shells log (sessions, daemons); pure
// classes return reasons. Levels: error needs a person; warn is degraded but running; info is a
// life event of a connection or a disk; debug is a command; trace is a PDU. Never a secret, never
// payload, nothing per I/O above debug.
//
// spdlog stays behind log.cc: its headers are the most expensive ones of the project. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "common/base/result.h"

namespace vjbod {

enum class LogLevel { trace, debug, info, warn, error };

// `level`: trace, debug, info, warn, error or off. Call once, from main.
Status start_logging(std::string_view level);
// The same names; from now on.
Status set_log_level(std::string_view level);

namespace log {

bool enabled(LogLevel level);
// One line: `prefix`, which may be empty, then the text.
void write(LogLevel level, std::string_view prefix, fmt::string_view format, fmt::format_args args);

template <typename... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  write(LogLevel::error, {}, format, fmt::make_format_args(args...));
}
template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  write(LogLevel::warn, {}, format, fmt::make_format_args(args...));
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write(LogLevel::info, {}, format, fmt::make_format_args(args...));
}
template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  write(LogLevel::debug, {}, format, fmt::make_format_args(args...));
}

}  // namespace log

// Puts a stable prefix such as "[disk0 gen3 iscsi]" before every line of one object.
class PrefixLogger {
 public:
  PrefixLogger() = default;
  explicit PrefixLogger(std::string_view prefix) { set_prefix(prefix); }

  void set_prefix(std::string_view prefix) { prefix_ = fmt::format("[{}] ", prefix); }
  std::string_view prefix() const { return prefix_; }

  template <typename... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) const {
    log::write(LogLevel::error, prefix_, format, fmt::make_format_args(args...));
  }
  template <typename... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) const {
    log::write(LogLevel::warn, prefix_, format, fmt::make_format_args(args...));
  }
  template <typename... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) const {
    log::write(LogLevel::info, prefix_, format, fmt::make_format_args(args...));
  }
  template <typename... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) const {
    log::write(LogLevel::debug, prefix_, format, fmt::make_format_args(args...));
  }
  template <typename... Args>
  void trace(fmt::format_string<Args...> format, Args&&... args) const {
    log::write(LogLevel::trace, prefix_, format, fmt::make_format_args(args...));
  }

 private:
  std::string prefix_;
};

}  // namespace vjbod
