// The daemon: everything wired together, from start to a clean stop.
#ifndef MERGEKERNEL_SERVER_MAIN_DAEMON_H_
#define MERGEKERNEL_SERVER_MAIN_DAEMON_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/config/config.h"
#include "server/main/logging.h"

namespace mk {

struct DaemonOptions {
  Config config;
  std::string ready_file;  // written with the bound addresses, as JSON, when ready; "": none
  // "NAME=value": what a GPU's driver may want of the environment, for the probe.
  std::vector<std::string> driver_environment;
};

// What the process ends with; systemd restarts it after all but 0.
inline constexpr int kExitOk = 0;          // asked to stop
inline constexpr int kExitFailed = 1;      // did not start, or was told twice to stop
inline constexpr int kExitUsage = 2;       // flags or configuration
inline constexpr int kExitNoDevice = 3;    // the device that was asked for cannot be used
inline constexpr int kExitDeviceLost = 4;  // it failed for good while serving

struct DaemonEnd {
  absl::Status status;  // OK, or why it did not start or had to end
  int exit_code = kExitOk;
};

// Runs until SIGTERM or SIGINT, or until the device is lost, then drains. The caller has blocked
// both signals in every thread. A second signal while draining ends the process at once. When the
// device is lost, health is NOT_SERVING at once, requests are answered with the reason, and the
// process ends within ten seconds whatever the driver does.
DaemonEnd RunDaemon(const DaemonOptions& options, Logger& logger);

}  // namespace mk

#endif  // MERGEKERNEL_SERVER_MAIN_DAEMON_H_
