// How fast packs are served: alone in this process, through the lanes, and by a running daemon over
// gRPC. tests/bench/run.sh starts the daemon and calls this.
#include <gnu/libc-version.h>
#include <grpcpp/grpcpp.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/device/cpu_facts.h"
#include "tests/bench/cases.h"
#include "tests/bench/grpc_load.h"
#include "tests/bench/in_process.h"
#include "tests/bench/load_result.h"
#include "tests/bench/report.h"

namespace mk {
namespace {

constexpr char kAbout[] =
    "serving_bench: latency and throughput of packs, in this process and over gRPC.\n"
    "\n"
    "Examples\n"
    "  serving_bench --repository packs                          in this process only\n"
    "  serving_bench --repository packs --ready-file ready.json  and against that daemon\n"
    "  serving_bench --address 127.0.0.1:8001 --cases echo-1MiB --concurrency 8\n"
    "\n"
    "Ways: `direct` is the pack on the caller's thread, `lanes` adds the queue and a lane's "
    "thread, "
    "`grpc` is the daemon.\n"
    "The cpu column is the daemon's own time; client and daemon share the machine.";

struct Options {
  std::string repository;
  std::string ready_file;
  std::string address;
  std::string json_file;
  std::string commit;
  std::vector<std::string> cases = {"echo-1KiB", "echo-1MiB"};
  std::vector<int> concurrency = {1, 8, 32};
  int rounds = 3;
  LoadPlan plan;
  GrpcTarget target;
};

void AddFlags(CLI::App& app, Options& options) {
  app.add_option("--repository", options.repository,
                 "Measure in this process with the packs of this folder");
  app.add_option("--ready-file", options.ready_file,
                 "Measure the daemon that wrote this with its --ready-file");
  app.add_option("--address", options.address, "Measure the daemon at host:port or unix:PATH");
  app.add_option("--cases", options.cases, "echo-1KiB, echo-1MiB, vmamba-pico")->delimiter(',');
  app.add_option("--concurrency", options.concurrency, "Requests outstanding at once")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  app.add_option("--rounds", options.rounds, "Runs of each; the table shows medians")
      ->check(CLI::Range(1, 100));
  app.add_option("--seconds", options.plan.seconds, "Of each run")->check(CLI::Range(0.05, 600.0));
  app.add_option("--warmup-seconds", options.plan.warmup_seconds, "Before each run, not counted")
      ->check(CLI::Range(0.0, 60.0));
  app.add_option("--client-threads", options.target.client_threads, "Threads and connections")
      ->check(CLI::Range(1, 64));
  app.add_flag("--messages", options.target.messages,
               "Make and read protobuf messages, as ordinary clients do, instead of ready bytes");
  app.add_option("--json", options.json_file, "Write all figures here");
  app.add_option("--commit", options.commit, "What was measured, for the JSON");
}

std::vector<std::pair<std::string, std::string>> Facts(const Options& options) {
  utsname system = {};
  uname(&system);
  return {{"commit", options.commit},
          {"cpu", CpuModelName()},
          {"cores", std::to_string(AllowedCores())},
          {"kernel", system.release},
          {"machine", system.machine},
          {"glibc", gnu_get_libc_version()},
          {"grpc", grpc::Version()},
          {"client", options.target.messages ? "messages" : "bytes"},
          {"client_threads", std::to_string(options.target.client_threads)}};
}

absl::Status ReadReadyFile(const std::string& path, GrpcTarget* target) {
  std::ifstream in(path);
  const nlohmann::json ready = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!ready.is_object() || !ready.contains("grpc") || !ready["grpc"].is_string()) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is no ready file of a daemon"));
  }
  target->address = ready["grpc"].get<std::string>();
  if (ready.contains("pid") && ready["pid"].is_number_integer()) {
    target->pid = ready["pid"].get<int>();
  }
  return absl::OkStatus();
}

// All that is to be measured, in the order of the table.
class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {}

  absl::Status Run() {
    MK_RETURN_IF_ERROR(Prepare());
    // Round by round, so that what changes with time touches all cells alike.
    for (int round = 0; round < options_.rounds; ++round) {
      for (Task& task : tasks_) {
        if (isatty(STDERR_FILENO) == 1) {
          std::fprintf(stderr, "\r\033[Kround %d of %d: %s %s, concurrency %d", round + 1,
                       options_.rounds, task.cell.bench_case.c_str(), task.cell.way.c_str(),
                       task.cell.concurrency);
        }
        MK_ASSIGN_OR_RETURN(const LoadResult result, RunOnce(task));
        task.cell.rounds.push_back(result);
      }
    }
    if (isatty(STDERR_FILENO) == 1) std::fprintf(stderr, "\r\033[K");
    return absl::OkStatus();
  }

  std::vector<Cell> Cells() const {
    std::vector<Cell> cells;
    for (const Task& task : tasks_) cells.push_back(task.cell);
    return cells;
  }

 private:
  struct Task {
    Cell cell;
    BenchCase bench_case;
  };

  absl::Status Prepare() {
    std::vector<std::string> ways;
    if (!options_.repository.empty()) {
      MK_ASSIGN_OR_RETURN(direct_, InProcess::Open(options_.repository, InProcessWay::kDirect));
      MK_ASSIGN_OR_RETURN(lanes_, InProcess::Open(options_.repository, InProcessWay::kLanes));
      ways = {"direct", "lanes"};
    }
    if (!options_.target.address.empty()) ways.push_back("grpc");
    if (ways.empty()) {
      return absl::InvalidArgumentError(
          "nothing to measure: give --repository, --ready-file or "
          "--address");
    }
    for (const std::string& name : options_.cases) {
      const std::optional<BenchCase> found = FindCase(name);
      if (!found) return absl::InvalidArgumentError(absl::StrCat("unknown case '", name, "'"));
      for (const std::string& way : ways) {
        for (const int concurrency : options_.concurrency) {
          // The pack alone has one caller; more would wait for each other.
          if (way == "direct" && concurrency != 1) continue;
          tasks_.push_back({{name, way, concurrency, {}}, *found});
        }
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<LoadResult> RunOnce(const Task& task) {
    LoadPlan plan = options_.plan;
    plan.concurrency = task.cell.concurrency;
    if (task.cell.way == "direct") return direct_->Run(task.bench_case, plan);
    if (task.cell.way == "lanes") return lanes_->Run(task.bench_case, plan);
    return RunGrpcLoad(options_.target, task.bench_case, plan);
  }

  const Options& options_;
  std::unique_ptr<InProcess> direct_;
  std::unique_ptr<InProcess> lanes_;
  std::vector<Task> tasks_;
};

absl::Status Measure(Options& options) {
  options.target.address = options.address;
  if (!options.ready_file.empty()) {
    MK_RETURN_IF_ERROR(ReadReadyFile(options.ready_file, &options.target));
  }
  Bench bench(options);
  MK_RETURN_IF_ERROR(bench.Run());
  const std::vector<Cell> cells = bench.Cells();
  std::printf("%s\n%s", Table(cells).c_str(), AddedLatency(cells).c_str());
  if (options.json_file.empty()) return absl::OkStatus();
  std::ofstream out(options.json_file);
  out << Json(cells, Facts(options));
  out.close();
  if (!out) return absl::InternalError(absl::StrCat("cannot write '", options.json_file, "'"));
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app(kAbout);
  Options options;
  AddFlags(app, options);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Measure(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "serving_bench: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace mk

int main(int argc, char** argv) { return mk::Main(argc, argv); }
