#include "core/config/config.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "proto/mergekernel/v1/config.pb.h"

namespace mk {
namespace {

Config Good() {
  Config config;
  config.repository = "/packs";
  return config;
}

TEST(ParseConfig, EmptyTextYieldsTheDefaults) {
  const auto config = ParseConfig("");
  ASSERT_TRUE(config.ok()) << config.status();
  const Config defaults;
  EXPECT_EQ(config->grpc_address, defaults.grpc_address);
  EXPECT_EQ(config->metrics_address, defaults.metrics_address);
  EXPECT_EQ(config->max_message_bytes, 64 << 20);
  EXPECT_EQ(config->queue_max_requests, 256u);
  EXPECT_EQ(config->version_policy, "latest");
  EXPECT_TRUE(config->load.empty());
}

TEST(ParseConfig, EveryFieldArrives) {
  const auto config = ParseConfig(R"(
    repository: "/r"  # a comment
    load: "a" load: "b"
    version_policy: "all"
    device: "cpu"
    device_budget_bytes: 2000000
    threads: 3
    grpc_address: "unix:/run/mk.sock"
    metrics_address: "[::1]:9"
    max_message_bytes: 5
    queue_max_requests: 6
    queue_max_bytes: 7
    total_max_requests: 8
    total_max_bytes: 9
    output_pool_bytes: 10
    probe_timeout_seconds: 1.5
    drain_timeout_seconds: 2.5
    keepalive_min_interval_ms: 11
    max_image_pixels: 12
    state_dir: "/s"
    probe_path: "/p"
    log_level: "error")");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->repository, "/r");
  EXPECT_EQ(config->load, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(config->version_policy, "all");
  EXPECT_EQ(config->device, "cpu");
  EXPECT_EQ(config->device_budget_bytes, 2000000u);
  EXPECT_EQ(config->threads, 3);
  EXPECT_EQ(config->grpc_address, "unix:/run/mk.sock");
  EXPECT_EQ(config->metrics_address, "[::1]:9");
  EXPECT_EQ(config->max_message_bytes, 5);
  EXPECT_EQ(config->queue_max_requests, 6u);
  EXPECT_EQ(config->queue_max_bytes, 7u);
  EXPECT_EQ(config->total_max_requests, 8u);
  EXPECT_EQ(config->total_max_bytes, 9u);
  EXPECT_EQ(config->output_pool_bytes, 10u);
  EXPECT_EQ(config->probe_timeout_seconds, 1.5);
  EXPECT_EQ(config->drain_timeout_seconds, 2.5);
  EXPECT_EQ(config->keepalive_min_interval_ms, 11);
  EXPECT_EQ(config->max_image_pixels, 12);
  EXPECT_EQ(config->state_dir, "/s");
  EXPECT_EQ(config->probe_path, "/p");
  EXPECT_EQ(config->log_level, "error");
  EXPECT_TRUE(ValidateConfig(*config).ok()) << ValidateConfig(*config);
  // A field that is added to the file's form must be added above.
  EXPECT_EQ(mergekernel::v1::Config::descriptor()->field_count(), 21);
}

TEST(ParseConfig, AnEmptyMetricsAddressIsASettingAndNotAnAbsence) {
  const auto config = ParseConfig("metrics_address: \"\"");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->metrics_address, "");
}

TEST(ParseConfig, RefusalsNameLineAndField) {
  const std::pair<const char*, const char*> cases[] = {
      {"threads: 1\nthreds: 2\n", "line 2, column 7: "},
      {"threads: 1\nthreds: 2\n", "\"threds\""},
      {"threads: 1\nthreads: 2\n", "line 2"},
      {"\n\nqueue_max_bytes: -1", "line 3"},
      {"threads: \"many\"", "line 1"},
      {"threads: 3000000000", "line 1"},
      {"repository: \"/r", "line 1"},
      {"<html>", "line 1"},
  };
  for (const auto& [text, part] : cases) {
    const auto config = ParseConfig(text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(config.status().message().find(part), std::string::npos) << config.status();
  }
}

TEST(ValidateConfig, DefaultsWithARepositoryAreLegal) {
  EXPECT_TRUE(ValidateConfig(Good()).ok()) << ValidateConfig(Good());
}

TEST(ValidateConfig, BoundsThemselvesAreLegal) {
  const std::function<void(Config&)> changes[] = {
      [](Config& c) { c.max_message_bytes = 1; },
      [](Config& c) { c.max_message_bytes = 2147483647; },
      [](Config& c) { c.metrics_address = ""; },
      [](Config& c) {
        c.grpc_address = "127.0.0.1:0";
        c.metrics_address = "127.0.0.1:0";
      },
      [](Config& c) { c.load = {"*"}; },
      [](Config& c) { c.version_policy = "latest:2"; },
      [](Config& c) { c.version_policy = "1,3,10"; },
      [](Config& c) { c.drain_timeout_seconds = 0; },
      [](Config& c) { c.total_max_requests = c.queue_max_requests = 1; },
      [](Config& c) { c.device_budget_bytes = 1 << 20; },
      [](Config& c) { c.device = "cuda"; },
      [](Config& c) { c.device = "cuda:1"; },
      [](Config& c) { c.threads = 1024; },
  };
  for (const auto& change : changes) {
    Config config = Good();
    change(config);
    EXPECT_TRUE(ValidateConfig(config).ok()) << ValidateConfig(config);
  }
}

struct Refusal {
  const char* field;
  std::string part;  // of the message: the value or the rule
  std::function<void(Config&)> change;
};

void ExpectRefused(const Refusal& refusal) {
  Config config = Good();
  refusal.change(config);
  const absl::Status status = ValidateConfig(config);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << refusal.field;
  EXPECT_NE(status.message().find(refusal.field), std::string::npos) << status;
  EXPECT_NE(status.message().find(refusal.part), std::string::npos) << status;
}

TEST(ValidateConfig, A08RefusesMessageLimitsOutsideOfProtobufs) {
  for (const int64_t bytes : {int64_t{0}, int64_t{-1}, int64_t{3} << 30, int64_t{1} << 31}) {
    ExpectRefused({"max_message_bytes", "from 1 to 2147483647",
                   [bytes](Config& c) { c.max_message_bytes = bytes; }});
    ExpectRefused({"max_message_bytes", std::to_string(bytes),
                   [bytes](Config& c) { c.max_message_bytes = bytes; }});
  }
}

TEST(ValidateConfig, RefusesEachFieldOutsideItsRule) {
  const std::string nul("/a\0b", 4);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const Refusal refusals[] = {
      {"repository", "holds the packs", [](Config& c) { c.repository = ""; }},
      {"repository", "NUL", [&](Config& c) { c.repository = nul; }},
      {"load", "\"../x\"", [](Config& c) { c.load = {"../x"}; }},
      {"load", "\"\"", [](Config& c) { c.load = {""}; }},
      {"load", "once",
       [](Config& c) {
         c.load = {"a", "a"};
       }},
      {"load", "one or the other",
       [](Config& c) {
         c.load = {"a", "*"};
       }},
      {"version_policy", "\"newest\"", [](Config& c) { c.version_policy = "newest"; }},
      {"version_policy", "\"\"", [](Config& c) { c.version_policy = ""; }},
      {"version_policy", "latest:0", [](Config& c) { c.version_policy = "latest:0"; }},
      {"version_policy", "latest:", [](Config& c) { c.version_policy = "latest:"; }},
      {"version_policy", "latest:3000000000",
       [](Config& c) { c.version_policy = "latest:3000000000"; }},
      {"version_policy", "1,,2", [](Config& c) { c.version_policy = "1,,2"; }},
      {"version_policy", "03", [](Config& c) { c.version_policy = "03"; }},
      {"version_policy", "9223372036854775808",
       [](Config& c) { c.version_policy = "9223372036854775808"; }},
      {"device", "\"gpu\"", [](Config& c) { c.device = "gpu"; }},
      {"device", "\"cuda:\"", [](Config& c) { c.device = "cuda:"; }},
      {"device", "\"cuda:-1\"", [](Config& c) { c.device = "cuda:-1"; }},
      {"device", "\"cuda:01\"", [](Config& c) { c.device = "cuda:01"; }},
      {"device", "\"cuda0\"", [](Config& c) { c.device = "cuda0"; }},
      {"device_budget_bytes", "1048575", [](Config& c) { c.device_budget_bytes = 1048575; }},
      {"device_budget_bytes", "1048576", [](Config& c) { c.device_budget_bytes = UINT64_MAX; }},
      {"threads", "-1", [](Config& c) { c.threads = -1; }},
      {"threads", "1025", [](Config& c) { c.threads = 1025; }},
      {"grpc_address", "\"\"", [](Config& c) { c.grpc_address = ""; }},
      {"grpc_address", "8001", [](Config& c) { c.grpc_address = "8001"; }},
      {"metrics_address", "65535", [](Config& c) { c.metrics_address = "localhost:70000"; }},
      {"metrics_address", "unix:/m", [](Config& c) { c.metrics_address = "unix:/m"; }},
      {"metrics_address", "another address", [](Config& c) { c.metrics_address = c.grpc_address; }},
      {"queue_max_requests", "is 0", [](Config& c) { c.queue_max_requests = 0; }},
      {"queue_max_requests", "1000000", [](Config& c) { c.queue_max_requests = 1'000'001; }},
      {"queue_max_bytes", "is 0", [](Config& c) { c.queue_max_bytes = 0; }},
      {"queue_max_bytes", "18446744073709551615",
       [](Config& c) { c.queue_max_bytes = UINT64_MAX; }},
      {"total_max_requests", "from 256", [](Config& c) { c.total_max_requests = 255; }},
      {"total_max_bytes", "from 268435456", [](Config& c) { c.total_max_bytes = 1; }},
      {"output_pool_bytes", "is 0", [](Config& c) { c.output_pool_bytes = 0; }},
      {"probe_timeout_seconds", "is 0", [](Config& c) { c.probe_timeout_seconds = 0; }},
      {"probe_timeout_seconds", "nan", [&](Config& c) { c.probe_timeout_seconds = nan; }},
      {"probe_timeout_seconds", "inf", [&](Config& c) { c.probe_timeout_seconds = inf; }},
      {"drain_timeout_seconds", "-1", [](Config& c) { c.drain_timeout_seconds = -1; }},
      {"drain_timeout_seconds", "86401", [](Config& c) { c.drain_timeout_seconds = 86401; }},
      {"keepalive_min_interval_ms", "is 0", [](Config& c) { c.keepalive_min_interval_ms = 0; }},
      {"max_image_pixels", "is 0", [](Config& c) { c.max_image_pixels = 0; }},
      {"max_image_pixels", "4294967296", [](Config& c) { c.max_image_pixels = INT64_MAX; }},
      {"state_dir", "NUL", [&](Config& c) { c.state_dir = nul; }},
      {"probe_path", "NUL", [&](Config& c) { c.probe_path = nul; }},
      {"log_level", "\"loud\"", [](Config& c) { c.log_level = "loud"; }},
  };
  for (const Refusal& refusal : refusals) ExpectRefused(refusal);
}

}  // namespace
}  // namespace mk
