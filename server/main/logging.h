// The daemon's log: lines on standard error, where journald or a terminal reads them.
#ifndef MERGEKERNEL_SERVER_MAIN_LOGGING_H_
#define MERGEKERNEL_SERVER_MAIN_LOGGING_H_

#include <memory>
#include <string>

namespace spdlog {
class logger;
}

namespace mk {

// Any thread.
class Logger {
 public:
  explicit Logger(const std::string& level);        // "debug", "info", "warning", "error"
  void Log(int level, const std::string& message);  // 0 debug .. 3 error
  void Info(const std::string& message) { Log(1, message); }

 private:
  std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_MAIN_LOGGING_H_
