// SPDX-License-Identifier: Apache-2.0
#include "common/base/log.h"

#include <memory>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace vjbod {

namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::trace: return spdlog::level::trace;
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warn: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
  }
  return spdlog::level::err;
}

Result<spdlog::level::level_enum> parse_level(std::string_view level) {
  spdlog::level::level_enum parsed = spdlog::level::from_str(std::string(level));
  if (parsed == spdlog::level::off && level != "off") {
    return fail(std::make_error_code(std::errc::invalid_argument),
                "log level \"{}\" is not known; use trace, debug, info, warn, error or off", level);
  }
  return parsed;
}

}  // namespace

Status start_logging(std::string_view level) {
  Result<spdlog::level::level_enum> parsed = parse_level(level);
  if (!parsed) return fail(std::move(parsed).error());
  auto logger =
      std::make_shared<spdlog::logger>("vjbod", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  logger->set_level(*parsed);
  logger->flush_on(spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
  return {};
}

Status set_log_level(std::string_view level) {
  Result<spdlog::level::level_enum> parsed = parse_level(level);
  if (!parsed) return fail(std::move(parsed).error());
  spdlog::set_level(*parsed);
  return {};
}

namespace log {

bool enabled(LogLevel level) {
  return spdlog::should_log(level_of(level));
}

void write(LogLevel level, std::string_view prefix, fmt::string_view format,
           fmt::format_args args) {
  if (!enabled(level)) return;
  fmt::memory_buffer line;
  line.append(prefix.data(), prefix.data() + prefix.size());
  fmt::vformat_to(std::back_inserter(line), format, args);
  spdlog::default_logger_raw()->log(level_of(level), std::string_view(line.data(), line.size()));
}

}  // namespace log
}  // namespace vjbod
