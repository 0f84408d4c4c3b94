#include "server/main/logging.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace mk {

Logger::Logger(const std::string& level)
    : logger_(std::make_shared<spdlog::logger>(
          "mergekerneld", std::make_shared<spdlog::sinks::stderr_color_sink_mt>())) {
  logger_->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %v");
  logger_->set_level(level == "debug"     ? spdlog::level::debug
                     : level == "warning" ? spdlog::level::warn
                     : level == "error"   ? spdlog::level::err
                                          : spdlog::level::info);
  logger_->flush_on(spdlog::level::info);
}

void Logger::Log(int level, const std::string& message) {
  // "{}": the message is data and not a format.
  switch (level) {
    case 0:
      logger_->debug("{}", message);
      break;
    case 1:
      logger_->info("{}", message);
      break;
    case 2:
      logger_->warn("{}", message);
      break;
    default:
      logger_->error("{}", message);
      break;
  }
}

}  // namespace mk
