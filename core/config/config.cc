#include "core/config/config.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/config/address.h"
#include "proto/mergekernel/v1/config.pb.h"

namespace mk {
namespace {

// Keeps the first error: those after it are mostly its consequences.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!text_.empty()) return;
    // The parser counts from 0; -1 is the whole text.
    const std::string place =
        line < 0 ? std::string() : absl::StrCat("line ", line + 1, ", column ", column + 1, ": ");
    text_ = absl::StrCat(place, Printable(message, 500));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

absl::Status Refuse(const char* field, const std::string& value, const std::string& rule) {
  return absl::InvalidArgumentError(
      absl::StrCat("config: ", field, " is ", value, "; it must be ", rule));
}

std::string Quoted(std::string_view value) { return "\"" + Printable(value) + "\""; }

template <typename T>
absl::Status CheckRange(const char* field, T value, T least, T most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return Refuse(field, absl::StrCat(value), absl::StrCat("from ", least, " to ", most));
}

absl::Status CheckSeconds(const char* field, double value, bool zero_allowed) {
  constexpr double kDay = 86400;
  if (std::isfinite(value) && value <= kDay && (zero_allowed ? value >= 0 : value > 0)) {
    return absl::OkStatus();
  }
  return Refuse(field, absl::StrCat(value),
                zero_allowed ? "from 0 to 86400 seconds" : "above 0 and at most 86400 seconds");
}

absl::Status CheckPath(const char* field, const std::string& value) {
  if (value.find('\0') == std::string::npos) return absl::OkStatus();
  return Refuse(field, Quoted(value), "a path without NUL bytes");
}

absl::Status CheckPacksToLoad(const std::vector<std::string>& load) {
  std::set<std::string_view> seen;
  for (const std::string& name : load) {
    if (name != "*" && !IsPlainName(name)) {
      return Refuse("load", Quoted(name),
                    "\"*\" or the name of a pack: letters, digits, '_', '.', '-'");
    }
    if (!seen.insert(name).second) return Refuse("load", Quoted(name), "listed once");
    if (name == "*" && load.size() > 1)
      return Refuse("load", "\"*\" and names", "one or the other");
  }
  return absl::OkStatus();
}

bool IsPositiveInt64(const std::string& text) {
  int64_t value = 0;
  return !text.empty() && text.front() >= '1' && text.front() <= '9' &&
         absl::SimpleAtoi(text, &value) && absl::StrCat(value) == text;
}

// The form alone, so that a slip is found before anything starts; core/loader reads the meaning.
absl::Status CheckVersionPolicy(const std::string& text) {
  const std::string prefix = "latest:";
  constexpr char kRule[] = "\"latest\", \"latest:N\", \"all\", or versions as \"1,3,10\"";
  if (text == "latest" || text == "all") return absl::OkStatus();
  if (text.substr(0, prefix.size()) == prefix) {
    int32_t count = 0;
    const std::string digits = text.substr(prefix.size());
    if (IsPositiveInt64(digits) && absl::SimpleAtoi(digits, &count)) return absl::OkStatus();
    return Refuse("version_policy", Quoted(text), kRule);
  }
  for (const std::string& version : std::vector<std::string>(absl::StrSplit(text, ','))) {
    if (!IsPositiveInt64(version)) return Refuse("version_policy", Quoted(text), kRule);
  }
  return absl::OkStatus();
}

absl::Status CheckAddresses(const Config& config) {
  const auto named = [](const char* field, const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat("config: ", field, ": ", status.message()));
  };
  const absl::StatusOr<Address> grpc = ParseAddress(config.grpc_address);
  if (!grpc.ok()) return named("grpc_address", grpc.status());
  if (config.metrics_address.empty()) return absl::OkStatus();
  const absl::StatusOr<Address> metrics = ParseAddress(config.metrics_address);
  if (!metrics.ok()) return named("metrics_address", metrics.status());
  if (metrics->kind == Address::Kind::kUnix) {
    return Refuse("metrics_address", Quoted(config.metrics_address),
                  "\"host:port\", or \"\" for no endpoint");
  }
  if (grpc->kind == Address::Kind::kTcp && metrics->port != 0 && metrics->port == grpc->port &&
      metrics->host == grpc->host) {
    return Refuse("metrics_address", Quoted(config.metrics_address),
                  "another address than grpc_address");
  }
  return absl::OkStatus();
}

absl::Status CheckQueues(const Config& config) {
  constexpr uint64_t kMostRequests = 1'000'000;
  constexpr uint64_t kMostBytes = std::numeric_limits<int64_t>::max();
  MK_RETURN_IF_ERROR(
      CheckRange<uint64_t>("queue_max_requests", config.queue_max_requests, 1, kMostRequests));
  MK_RETURN_IF_ERROR(
      CheckRange<uint64_t>("queue_max_bytes", config.queue_max_bytes, 1, kMostBytes));
  MK_RETURN_IF_ERROR(CheckRange<uint64_t>("total_max_requests", config.total_max_requests,
                                          config.queue_max_requests, kMostRequests));
  MK_RETURN_IF_ERROR(CheckRange<uint64_t>("total_max_bytes", config.total_max_bytes,
                                          config.queue_max_bytes, kMostBytes));
  return CheckRange<uint64_t>("output_pool_bytes", config.output_pool_bytes, 1, kMostBytes);
}

absl::Status CheckDevice(const Config& config) {
  // Less than this is a slip in the unit.
  constexpr uint64_t kLeastBudget = 1 << 20;
  constexpr uint64_t kMostBudget = std::numeric_limits<int64_t>::max();
  const std::string prefix = "cuda:";
  int32_t ordinal = 0;
  const bool numbered = config.device.substr(0, prefix.size()) == prefix &&
                        absl::SimpleAtoi(config.device.substr(prefix.size()), &ordinal) &&
                        absl::StrCat(prefix, ordinal) == config.device && ordinal >= 0;
  if (config.device != "cpu" && config.device != "cuda" && !numbered) {
    return Refuse("device", Quoted(config.device), "\"cpu\", \"cuda\" or \"cuda:N\"");
  }
  const uint64_t budget = config.device_budget_bytes;
  if (budget != 0 && (budget < kLeastBudget || budget > kMostBudget)) {
    return Refuse("device_budget_bytes", absl::StrCat(budget),
                  absl::StrCat("0, or from ", kLeastBudget, " to ", kMostBudget));
  }
  return CheckRange<int>("threads", config.threads, 0, 1024);
}

absl::Status CheckLogLevel(const std::string& level) {
  for (const char* known : {"debug", "info", "warning", "error"}) {
    if (level == known) return absl::OkStatus();
  }
  return Refuse("log_level", Quoted(level), "\"debug\", \"info\", \"warning\" or \"error\"");
}

}  // namespace

absl::StatusOr<Config> ParseConfig(std::string_view text) {
  mergekernel::v1::Config proto;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(std::string(text), &proto)) {
    return absl::InvalidArgumentError(absl::StrCat("config: ", error.text()));
  }
  Config config;
// What is present replaces the default; `metrics_address: ""` is present.
#define MK_TAKE(field) \
  if (proto.has_##field()) config.field = proto.field()
  MK_TAKE(repository);
  config.load.assign(proto.load().begin(), proto.load().end());
  MK_TAKE(version_policy);
  MK_TAKE(device);
  MK_TAKE(device_budget_bytes);
  MK_TAKE(threads);
  MK_TAKE(grpc_address);
  MK_TAKE(metrics_address);
  MK_TAKE(max_message_bytes);
  MK_TAKE(queue_max_requests);
  MK_TAKE(queue_max_bytes);
  MK_TAKE(total_max_requests);
  MK_TAKE(total_max_bytes);
  MK_TAKE(output_pool_bytes);
  MK_TAKE(probe_timeout_seconds);
  MK_TAKE(drain_timeout_seconds);
  MK_TAKE(keepalive_min_interval_ms);
  MK_TAKE(max_image_pixels);
  MK_TAKE(state_dir);
  MK_TAKE(probe_path);
  MK_TAKE(log_level);
#undef MK_TAKE
  return config;
}

absl::Status ValidateConfig(const Config& config) {
  if (config.repository.empty()) {
    return Refuse("repository", "\"\"", "the folder that holds the packs");
  }
  MK_RETURN_IF_ERROR(CheckPath("repository", config.repository));
  MK_RETURN_IF_ERROR(CheckPacksToLoad(config.load));
  MK_RETURN_IF_ERROR(CheckVersionPolicy(config.version_policy));
  MK_RETURN_IF_ERROR(CheckDevice(config));
  MK_RETURN_IF_ERROR(CheckAddresses(config));
  // gRPC takes an int, in which -1 is "no limit", and Protobuf cannot represent more: field case
  // A08.
  MK_RETURN_IF_ERROR(
      CheckRange<int64_t>("max_message_bytes", config.max_message_bytes, 1, INT32_MAX));
  MK_RETURN_IF_ERROR(CheckQueues(config));
  MK_RETURN_IF_ERROR(CheckSeconds("probe_timeout_seconds", config.probe_timeout_seconds, false));
  MK_RETURN_IF_ERROR(CheckSeconds("drain_timeout_seconds", config.drain_timeout_seconds, true));
  MK_RETURN_IF_ERROR(CheckRange<int64_t>("keepalive_min_interval_ms",
                                         config.keepalive_min_interval_ms, 1, INT32_MAX));
  // Three bytes a pixel stay far from overflow.
  MK_RETURN_IF_ERROR(
      CheckRange<int64_t>("max_image_pixels", config.max_image_pixels, 1, int64_t{1} << 32));
  MK_RETURN_IF_ERROR(CheckPath("state_dir", config.state_dir));
  MK_RETURN_IF_ERROR(CheckPath("probe_path", config.probe_path));
  return CheckLogLevel(config.log_level);
}

}  // namespace mk
