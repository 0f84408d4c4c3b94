// mk bench: a closed loop of requests, timed at the client.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/text.h"
#include "core/device/cpu_facts.h"
#include "server/cli/common.h"
#include "server/cli/tensors.h"

namespace mk::cli {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

struct Flags {
  std::string pack;
  std::string concurrency = "1";
  double seconds = 3;
  uint64_t requests = 0;  // 0: by time
  uint64_t warmup = 20;
  std::vector<std::string> inputs, values, shapes;
};

struct Result {
  std::vector<double> seconds;
  uint64_t failed = 0;
  std::string first_error;
  ExitCode exit_code = kOk;  // of that one
  double wall = 0;
};

// Lets all clients warm up before the first timed request of any.
class StartLine {
 public:
  explicit StartLine(int runners) : missing_(runners) {}
  void Arrive() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (--missing_ == 0) {
      begin_ = Clock::now();
      changed_.notify_all();
    }
    changed_.wait(lock, [this] { return missing_ == 0; });
  }
  Clock::time_point begin() const { return begin_; }  // once all have arrived
  // 0 while some are missing. Any thread.
  double SecondsSinceBegin() {
    std::lock_guard<std::mutex> lock(mutex_);
    return missing_ != 0 ? 0 : std::chrono::duration<double>(Clock::now() - begin_).count();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int missing_;
  Clock::time_point begin_;
};

// One client thread: a connection of its own, one request after another.
void Loop(const Globals& globals, const Flags& flags, const inference::ModelInferRequest& request,
          StartLine& start, std::atomic<int64_t>& left, std::atomic<uint64_t>& done,
          Result& result) {
  Client client(globals);
  const auto call = [&](double* seconds) {
    grpc::ClientContext context;
    client.Prepare(context);
    inference::ModelInferResponse response;
    const auto begin = Clock::now();
    const grpc::Status status = client.stub().ModelInfer(&context, request, &response);
    *seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return status;
  };
  double seconds = 0;
  for (uint64_t i = 0; i < flags.warmup; ++i) static_cast<void>(call(&seconds));
  start.Arrive();
  const auto end = start.begin() + std::chrono::duration_cast<Clock::duration>(
                                       std::chrono::duration<double>(flags.seconds));
  while (flags.requests != 0 ? left.fetch_sub(1) > 0 : Clock::now() < end) {
    const grpc::Status status = call(&seconds);
    done.fetch_add(1);
    if (status.ok()) {
      result.seconds.push_back(seconds);
      continue;
    }
    if (++result.failed == 1) {
      result.first_error = status.error_message();
      result.exit_code = ExitCodeOf(status);
    }
    if (ExitCodeOf(status) == kUnreachable) return;
  }
}

Result Measure(const Globals& globals, const Flags& flags,
               const inference::ModelInferRequest& request, int concurrency) {
  std::vector<Result> results(static_cast<size_t>(concurrency));
  std::atomic<int64_t> left{static_cast<int64_t>(flags.requests)};
  std::atomic<uint64_t> done{0};
  StartLine start(concurrency);
  std::vector<std::thread> threads;
  for (Result& result : results) {
    threads.emplace_back([&] { Loop(globals, flags, request, start, left, done, result); });
  }
  Progress progress("concurrency " + std::to_string(concurrency), flags.requests);
  std::atomic<bool> joined{false};
  std::thread ticker([&] {
    while (!joined) {
      if (flags.requests != 0) {
        progress.Set(done.load());
      } else {
        progress.Set(done.load(), start.SecondsSinceBegin() / flags.seconds);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  for (std::thread& thread : threads) thread.join();
  Result all;
  all.wall = std::chrono::duration<double>(Clock::now() - start.begin()).count();
  joined = true;
  ticker.join();
  for (const Result& result : results) {
    all.seconds.insert(all.seconds.end(), result.seconds.begin(), result.seconds.end());
    all.failed += result.failed;
    if (all.first_error.empty()) {
      all.first_error = result.first_error;
      all.exit_code = result.exit_code;
    }
  }
  return all;
}

int Prepare(const Globals& globals, const Flags& flags, inference::ModelInferRequest* request) {
  Client client(globals);
  inference::ModelMetadataRequest metadata_request;
  metadata_request.set_name(flags.pack);
  inference::ModelMetadataResponse metadata;
  grpc::ClientContext context;
  client.Prepare(context);
  grpc::Status status = client.stub().ModelMetadata(&context, metadata_request, &metadata);
  inference::ModelConfigResponse config;
  if (status.ok()) {
    inference::ModelConfigRequest config_request;
    config_request.set_name(flags.pack);
    grpc::ClientContext config_context;
    client.Prepare(config_context);
    status = client.stub().ModelConfig(&config_context, config_request, &config);
  }
  if (!status.ok()) return ReportForPack(globals, client, flags.pack, status);
  std::map<std::string, bool> optional;
  for (const auto& input : config.config().input()) optional[input.name()] = input.optional();
  const auto inputs = ParseInputFlags(flags.inputs, flags.values, flags.shapes, true);
  if (!inputs.ok()) return ReportUsage(globals, std::string(inputs.status().message()));
  request->set_model_name(flags.pack);
  const absl::Status filled = FillInputs(metadata, optional, *inputs, request);
  return filled.ok() ? kOk : ReportUsage(globals, std::string(filled.message()));
}

int Bench(const Globals& globals, const Flags& flags) {
  std::vector<int> levels;
  for (const absl::string_view part : absl::StrSplit(flags.concurrency, ',')) {
    int level = 0;
    if (!absl::SimpleAtoi(part, &level) || level < 1 || level > 1024) {
      return ReportUsage(globals, "--concurrency '" + flags.concurrency +
                                      "' must read like 1,8,32, each 1 to 1024");
    }
    levels.push_back(level);
  }
  inference::ModelInferRequest request;
  const int prepared = Prepare(globals, flags, &request);
  if (prepared != kOk) return prepared;
  json out = {{"pack", flags.pack},         {"measured", "at the client, closed loop"},
              {"address", globals.address}, {"cpu", CpuModelName()},
              {"cores", AllowedCores()},    {"results", json::array()}};
  Table table({"CONCURRENCY", "REQUESTS/S", "P50", "P90", "P99", "MAX", "OK", "FAILED"});
  ExitCode worst = kOk;
  for (const int level : levels) {
    const Result result = Measure(globals, flags, request, level);
    const double rate = static_cast<double>(result.seconds.size()) / result.wall;
    const auto q = [&](double p) { return Percentile(result.seconds, p); };
    out["results"].push_back({{"concurrency", level},
                              {"requests_per_second", rate},
                              {"p50_seconds", q(.5)},
                              {"p90_seconds", q(.9)},
                              {"p99_seconds", q(.99)},
                              {"max_seconds", q(1)},
                              {"ok", result.seconds.size()},
                              {"failed", result.failed}});
    table.Row({std::to_string(level), Fixed(rate, 0), HumanDuration(q(.5)), HumanDuration(q(.9)),
               HumanDuration(q(.99)), HumanDuration(q(1)), std::to_string(result.seconds.size()),
               std::to_string(result.failed)});
    if (result.failed) {
      worst = std::max(worst, result.exit_code);
      std::cerr << "mk: concurrency " << level << ": " << result.failed
                << " failed; the first: " << TerminalText(result.first_error, 1000) << "\n";
    }
  }
  if (globals.json) {
    std::cout << JsonText(out);
  } else {
    std::cout << table.Text() << "Measured at the client, closed loop, against " << globals.address
              << ", on " << CpuModelName() << ", " << AllowedCores() << " cores.\n";
  }
  return worst;
}

}  // namespace

void AddBench(CLI::App& app, Globals& globals, int* exit_code) {
  auto* command = app.add_subcommand(
      "bench",
      "Load a pack with requests and measure latency and throughput at the client\n"
      "Examples\n"
      "  mk bench echo --shape INPUT0=1024 --concurrency 1,8,32\n"
      "  mk bench vmamba-pico --shape image=28,28,1 --duration 10");
  auto flags = std::make_shared<Flags>();
  command->add_option("PACK", flags->pack, "Name of the pack")->required();
  command
      ->add_option("--concurrency", flags->concurrency, "Requests under way, one run each: 1,8,32")
      ->capture_default_str();
  command->add_option("--duration", flags->seconds, "Seconds per run")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  command->add_option("--requests", flags->requests, "Requests per run, instead of a duration");
  command->add_option("--warmup", flags->warmup, "Requests per client before the run")
      ->capture_default_str();
  OneEach(command->add_option("--input", flags->inputs,
                              "NAME=FILE: .npy or raw bytes; random without"));
  OneEach(command->add_option("--value", flags->values, "NAME=1,2,3, or a text for a BYTES input"));
  OneEach(command->add_option("--shape", flags->shapes, "NAME=1,2,3 for inputs of a free size"));
  command->callback([&globals, exit_code, flags] { *exit_code = Bench(globals, *flags); });
}

}  // namespace mk::cli
