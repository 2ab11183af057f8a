// SPDX-License-Identifier: Apache-2.0
#include "common/base/log.h"

#include <memory>

#include <spdlog/sinks/stdout_sinks.h>

namespace vjbod {

Status start_logging(std::string_view level) {
  auto parsed = spdlog::level::from_str(std::string(level));
  if (parsed == spdlog::level::off && level != "off") {
    return fail(std::make_error_code(std::errc::invalid_argument),
                "log level \"{}\" is not known; use trace, debug, info, warn, error or off", level);
  }
  auto logger =
      std::make_shared<spdlog::logger>("vjbod", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  logger->set_level(parsed);
  logger->flush_on(spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
  return {};
}

}  // namespace vjbod
