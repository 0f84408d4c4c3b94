// Everything an operator can set, validated once. Read from a text file
// (proto/mergekernel/v1/config.proto in text form), then from flags, which win. Environment
// variables are read nowhere else than in the program's main.
#ifndef MERGEKERNEL_CORE_CONFIG_CONFIG_H_
#define MERGEKERNEL_CORE_CONFIG_CONFIG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mk {

struct Config {
  std::string repository;                 // root folder of the packs; required
  std::vector<std::string> load;          // packs to load at start; "*": all
  std::string version_policy = "latest";  // see core/loader/version_policy.h
  std::string device = "cpu";        // or "cuda", "cuda:N": what is asked for, and never another
  uint64_t device_budget_bytes = 0;  // 0: the device decides
  int threads = 0;                   // of the CPU pool; 0: all cores allowed
  std::string grpc_address = "127.0.0.1:8001";     // host:port (port 0: a free one) or unix:PATH
  std::string metrics_address = "127.0.0.1:8002";  // host:port; "": no endpoint
  int64_t max_message_bytes = 64 << 20;            // 1 .. 2^31 - 1, both ways
  uint64_t queue_max_requests = 256;               // per pack
  uint64_t queue_max_bytes = 256u << 20;
  uint64_t total_max_requests = 4096;  // over all packs
  uint64_t total_max_bytes = 1024u << 20;
  uint64_t output_pool_bytes = 1024u << 20;  // host memory for outputs in flight
  double probe_timeout_seconds = 60;
  double drain_timeout_seconds = 30;
  int64_t keepalive_min_interval_ms = 10'000;  // pings faster than this are answered with GOAWAY
  int64_t max_image_pixels = 64 << 20;
  std::string state_dir;           // quarantine memory; "": none
  std::string probe_path;          // "": mergekernel-probe beside the daemon
  std::string log_level = "info";  // debug, info, warning, error
};

// A Config from text. INVALID_ARGUMENT with line and field for what does not parse or is unknown.
// Values are not judged.
absl::StatusOr<Config> ParseConfig(std::string_view text);

// INVALID_ARGUMENT naming the field, the value and the rule, for the first that breaks one.
absl::Status ValidateConfig(const Config& config);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_CONFIG_CONFIG_H_
