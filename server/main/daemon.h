// The daemon: everything wired together, from start to a clean stop.
#ifndef MERGEKERNEL_SERVER_MAIN_DAEMON_H_
#define MERGEKERNEL_SERVER_MAIN_DAEMON_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/config/config.h"
#include "server/main/logging.h"

namespace mk {

struct DaemonOptions {
  Config config;
  std::string ready_file;  // written with the bound addresses, as JSON, when ready; "": none
};

// Runs until SIGTERM or SIGINT, then drains and returns OK; a status otherwise says why it did not
// start or had to end. The caller has blocked both signals in every thread. A second signal while
// draining ends the process at once with 1.
absl::Status RunDaemon(const DaemonOptions& options, Logger& logger);

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_MAIN_DAEMON_H_
