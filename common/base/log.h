// SPDX-License-Identifier: Apache-2.0
// Logging to stderr, in the form the journal likes. Only shells log (sessions, daemons); pure
// classes return reasons. Levels: error needs a person; warn is degraded but running; info is a
// life event of a connection or a disk; debug is a command; trace is a PDU. Never a secret, never
// payload, nothing per I/O above debug.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <spdlog/spdlog.h>

#include "common/base/result.h"

namespace vjbod {

// `level`: trace, debug, info, warn, error. Call once, from main.
Status start_logging(std::string_view level);

// Puts a stable prefix such as "[disk0 gen3 iscsi]" before every line of one object.
class PrefixLogger {
 public:
  PrefixLogger() = default;
  explicit PrefixLogger(std::string prefix) : prefix_("[" + std::move(prefix) + "] ") {}

  void set_prefix(std::string_view prefix) { prefix_ = fmt::format("[{}] ", prefix); }
  std::string_view prefix() const { return prefix_; }

  template <typename... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) const {
    write(spdlog::level::err, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) const {
    write(spdlog::level::warn, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) const {
    write(spdlog::level::info, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) const {
    write(spdlog::level::debug, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void trace(fmt::format_string<Args...> format, Args&&... args) const {
    write(spdlog::level::trace, format, std::forward<Args>(args)...);
  }

 private:
  template <typename... Args>
  void write(spdlog::level::level_enum level, fmt::format_string<Args...> format,
             Args&&... args) const {
    if (!spdlog::should_log(level)) return;
    spdlog::log(level, "{}{}", prefix_, fmt::format(format, std::forward<Args>(args)...));
  }

  std::string prefix_;
};

}  // namespace vjbod
