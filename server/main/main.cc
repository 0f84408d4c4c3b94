// mergekerneld: flags to a Config, then the daemon.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/version.h"
#include "core/config/config.h"
#include "core/device/open_device.h"
#include "server/main/daemon.h"
#include "server/main/logging.h"

namespace mk {
namespace {

constexpr char kAbout[] =
    "mergekerneld: serves model packs of hand-written kernels over gRPC (Open Inference Protocol "
    "v2).\n"
    "\n"
    "Examples\n"
    "  mergekerneld --repository packs --load vmamba-pico\n"
    "  mergekerneld --repository packs --load '*' --grpc-address unix:/run/mergekernel/grpc.sock\n"
    "  mergekerneld --config /etc/mergekernel/mergekerneld.textproto\n"
    "\n"
    "Settings come from --config (text form of proto/mergekernel/v1/config.proto), then from "
    "flags, which win.\n"
    "\n"
    "Exit codes: 0 asked to stop, 1 failed, 2 bad flags or configuration, 3 the device that was "
    "asked for cannot be used, 4 the device was lost while serving.";

// A flag's default is the configuration's, whether that came from the struct or from the file.
void AddFlags(CLI::App& app, Config& config) {
  app.add_option("--repository", config.repository, "Folder of the packs: <pack>/<version>/");
  app.add_option("--load", config.load,
                 "Pack to load at start; may be given several times; '*' for all");
  app.add_option("--version-policy", config.version_policy, "latest, latest:N, all, or 1,3,10");
  app.add_option("--device", config.device,
                 "cpu, cuda or cuda:N; what is asked for is used or the daemon does not start");
  app.add_option("--device-budget-bytes", config.device_budget_bytes,
                 "Most device memory for all packs; 0: nine tenths of what is available");
  app.add_option("--threads", config.threads, "Threads of the CPU pool; 0: all allowed cores");
  app.add_option("--grpc-address", config.grpc_address,
                 "host:port (port 0: a free one) or unix:PATH");
  app.add_option("--metrics-address", config.metrics_address, "host:port of /metrics; '' for none");
  app.add_option("--max-message-bytes", config.max_message_bytes, "Largest message, both ways");
  app.add_option("--queue-max-requests", config.queue_max_requests, "Waiting requests per pack");
  app.add_option("--queue-max-bytes", config.queue_max_bytes, "Bytes of waiting requests per pack");
  app.add_option("--total-max-requests", config.total_max_requests, "Waiting requests in all");
  app.add_option("--total-max-bytes", config.total_max_bytes, "Bytes of waiting requests in all");
  app.add_option("--output-pool-bytes", config.output_pool_bytes,
                 "Host memory for answers under way");
  app.add_option("--probe-timeout-seconds", config.probe_timeout_seconds,
                 "A pack's trial in its own process may take this long");
  app.add_option("--drain-timeout-seconds", config.drain_timeout_seconds,
                 "How long an unload or a stop waits for requests under way");
  app.add_option("--keepalive-min-interval-ms", config.keepalive_min_interval_ms,
                 "Clients that ping more often are dropped");
  app.add_option("--max-image-pixels", config.max_image_pixels, "Largest image that is decoded");
  app.add_option("--state-dir", config.state_dir,
                 "Folder that remembers quarantined packs; '' for none");
  app.add_option("--probe-path", config.probe_path,
                 "mergekernel-probe; default: beside this program");
  app.add_option("--log-level", config.log_level, "debug, info, warning, error");
}

int Fail(const std::string& message, int exit_code = kExitFailed) {
  std::fprintf(stderr, "mergekerneld: %s\n", message.c_str());
  return exit_code;
}

int Main(int argc, char** argv) {
  Config config;
  // The file is read before the flags are, so that flags win.
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string(argv[i]) != "--config") continue;
    std::ifstream in(argv[i + 1], std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    if (!in.good()) return Fail(std::string("--config '") + argv[i + 1] + "' cannot be read");
    const auto parsed = ParseConfig(text.str());
    if (!parsed.ok()) return Fail(std::string(parsed.status().message()));
    config = *parsed;
  }
  CLI::App app(kAbout);
  std::string config_file;
  DaemonOptions options;
  app.add_option("--config", config_file, "Configuration file");
  app.add_option("--ready-file", options.ready_file,
                 "Write the bound addresses here, as JSON, when ready");
  app.set_version_flag("--version", std::string("mergekerneld ") + kVersion);
  AddFlags(app, config);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  const absl::Status valid = ValidateConfig(config);
  if (!valid.ok()) return Fail(std::string(valid.message()), kExitUsage);
  options.config = config;
  options.driver_environment = DriverEnvironment();
  Logger logger(config.log_level);
  const DaemonEnd end = RunDaemon(options, logger);
  return end.status.ok() ? end.exit_code : Fail(std::string(end.status.message()), end.exit_code);
}

}  // namespace
}  // namespace mk

int main(int argc, char** argv) {
  // Blocked here, so that every thread inherits it and one place waits for them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return mk::Main(argc, argv);
}
