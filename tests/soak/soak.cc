// Loads, uses and unloads packs of a running daemon again and again, and tells whether the daemon
// grew. tests/soak/run.sh starts the daemon and calls this.
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "proto/inference/grpc_service.grpc.pb.h"
#include "tests/soak/process_size.h"
#include "tests/soak/trend.h"

namespace mk {
namespace {

constexpr char kAbout[] =
    "soak: load, infer, unload, over and over; fails when the daemon's memory, descriptors, "
    "threads, mappings or\n"
    "children grow, or a cycle becomes slower.\n"
    "\n"
    "Example\n"
    "  soak --ready-file ready.json --cycles 1000 --packs echo,vmamba-pico";

struct Options {
  std::string ready_file;
  std::string csv_file;
  std::vector<std::string> packs = {"echo", "vmamba-pico"};
  int cycles = 1000;
  int settle = 10;
  double max_resident_growth_bytes = 1 << 20;
  double max_count_growth = 2;
};

absl::Status ToAbsl(const grpc::Status& status, const std::string& what) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      absl::StrCat(what, ": ", status.error_message()));
}

class Daemon {
 public:
  absl::Status Connect(const std::string& ready_file) {
    std::ifstream in(ready_file);
    const nlohmann::json ready = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
    if (!ready.is_object() || !ready.contains("grpc") || !ready.contains("pid")) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", ready_file, "' is no ready file of a daemon"));
    }
    pid_ = ready["pid"].get<int>();
    stub_ = inference::GRPCInferenceService::NewStub(
        grpc::CreateChannel(ready["grpc"].get<std::string>(), grpc::InsecureChannelCredentials()));
    return absl::OkStatus();
  }

  absl::Status Cycle(const std::string& pack) {
    grpc::ClientContext load_context, unload_context;
    inference::RepositoryModelLoadRequest load;
    inference::RepositoryModelLoadResponse loaded;
    load.set_model_name(pack);
    MK_RETURN_IF_ERROR(
        ToAbsl(stub_->RepositoryModelLoad(&load_context, load, &loaded), "load " + pack));
    MK_RETURN_IF_ERROR(Infer(pack));
    inference::RepositoryModelUnloadRequest unload;
    inference::RepositoryModelUnloadResponse unloaded;
    unload.set_model_name(pack);
    return ToAbsl(stub_->RepositoryModelUnload(&unload_context, unload, &unloaded),
                  "unload " + pack);
  }

  absl::StatusOr<ProcessSize> Size() const { return ReadProcessSize(pid_); }

 private:
  // Zeros for every input that the pack insists on, 16 in place of each open dim; where it insists
  // on none, for its first.
  absl::Status Infer(const std::string& pack) {
    grpc::ClientContext config_context, infer_context;
    inference::ModelConfigRequest ask;
    inference::ModelConfigResponse config;
    ask.set_name(pack);
    MK_RETURN_IF_ERROR(ToAbsl(stub_->ModelConfig(&config_context, ask, &config), "config"));
    inference::ModelInferRequest request;
    request.set_model_name(pack);
    for (const inference::ModelInput& input : config.config().input()) {
      const bool last_chance = request.inputs_size() == 0;
      if (input.optional() && !last_chance) continue;
      auto* tensor = request.add_inputs();
      tensor->set_name(input.name());
      tensor->set_datatype("UINT8");
      size_t size = 1;
      for (int i = 0; i < input.dims_size(); ++i) {
        // A picture's last dim is its channels, of which 16 would be too many.
        const int64_t open = input.dims_size() == 3 && i == 2 ? 1 : 28;
        tensor->add_shape(input.dims(i) < 0 ? open : input.dims(i));
        size *= static_cast<size_t>(tensor->shape(i));
      }
      request.add_raw_input_contents(std::string(size, '\0'));
    }
    inference::ModelInferResponse response;
    return ToAbsl(stub_->ModelInfer(&infer_context, request, &response), "infer " + pack);
  }

  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
  int pid_ = 0;
};

// One line of the verdict.
struct Series {
  const char* name;
  double unit;   // what the table divides by
  double limit;  // of growth over the second half; -1: none
  std::vector<double> values;
};

class Soak {
 public:
  explicit Soak(const Options& options) : options_(options) {
    series_ = {{"resident KiB", 1024, options.max_resident_growth_bytes, {}},
               {"descriptors", 1, options.max_count_growth, {}},
               {"threads", 1, options.max_count_growth, {}},
               {"mappings", 1, options.max_count_growth, {}},
               {"children", 1, 0, {}},
               {"cycle ms", 1, -1, {}}};
  }

  absl::Status Run() {
    MK_RETURN_IF_ERROR(daemon_.Connect(options_.ready_file));
    for (int cycle = 0; cycle < options_.cycles; ++cycle) {
      const auto begin = std::chrono::steady_clock::now();
      for (const std::string& pack : options_.packs) MK_RETURN_IF_ERROR(daemon_.Cycle(pack));
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - begin;
      MK_ASSIGN_OR_RETURN(const ProcessSize size, daemon_.Size());
      if (cycle >= options_.settle) Note(size, took.count());
      if (isatty(STDERR_FILENO) == 1 && cycle % 10 == 0) {
        std::fprintf(stderr, "\r\033[Kcycle %d of %d", cycle, options_.cycles);
      }
    }
    if (isatty(STDERR_FILENO) == 1) std::fprintf(stderr, "\r\033[K");
    return WriteCsv();
  }

  // Prints the table; false when something grew. Judged by the second half: the allocator's own
  // arenas settle over the first few hundred cycles, and a leak shows in any half. Both the line
  // through all its cycles and its last tenth must say so: threads that come and go lift either
  // alone.
  bool Verdict() const {
    std::printf("%-13s %12s %12s %12s %14s %10s\n", "", "at first", "at the end", "per cycle",
                "in 2nd half", "allowed");
    bool flat = true;
    for (const Series& one : series_) {
      const Trend all = TrendOf(one.values);
      const size_t half = one.values.size() / 2;
      const Trend trend =
          TrendOf({one.values.begin() + static_cast<ptrdiff_t>(half), one.values.end()});
      const double growth = trend.per_cycle * static_cast<double>(one.values.size() - half);
      const bool grew =
          one.limit >= 0 && growth > one.limit && trend.last - trend.first > one.limit;
      flat = flat && !grew;
      const std::string allowed =
          one.limit < 0 ? "-" : absl::StrCat("+", static_cast<int64_t>(one.limit / one.unit));
      std::printf("%-13s %12.1f %12.1f %+12.4f %+14.1f %10s%s\n", one.name, all.first / one.unit,
                  all.last / one.unit, all.per_cycle / one.unit, growth / one.unit, allowed.c_str(),
                  grew ? "  GREW" : "");
    }
    return flat;
  }

 private:
  void Note(const ProcessSize& size, double milliseconds) {
    const double values[] = {size.resident_bytes, size.descriptors, size.threads,
                             size.mappings,       size.children,    milliseconds};
    for (size_t i = 0; i < series_.size(); ++i) series_[i].values.push_back(values[i]);
  }

  absl::Status WriteCsv() const {
    if (options_.csv_file.empty()) return absl::OkStatus();
    std::ofstream out(options_.csv_file);
    out << "cycle,resident_bytes,descriptors,threads,mappings,children,milliseconds\n";
    for (size_t i = 0; i < series_[0].values.size(); ++i) {
      out << i + static_cast<size_t>(options_.settle);
      for (const Series& one : series_) out << "," << static_cast<int64_t>(one.values[i]);
      out << "\n";
    }
    out.close();
    if (!out) return absl::InternalError(absl::StrCat("cannot write '", options_.csv_file, "'"));
    return absl::OkStatus();
  }

  const Options& options_;
  Daemon daemon_;
  std::vector<Series> series_;
};

int Main(int argc, char** argv) {
  CLI::App app(kAbout);
  Options options;
  app.add_option("--ready-file", options.ready_file, "What the daemon wrote with its --ready-file")
      ->required();
  app.add_option("--packs", options.packs, "Loaded, used and unloaded in each cycle")
      ->delimiter(',');
  app.add_option("--cycles", options.cycles, "How many")->check(CLI::Range(2, 10'000'000));
  app.add_option("--settle", options.settle, "Cycles at the start that are not counted")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--max-resident-growth-bytes", options.max_resident_growth_bytes,
                 "Resident memory may grow by so much over the second half of the cycles");
  app.add_option("--max-count-growth", options.max_count_growth,
                 "Descriptors, threads and mappings may each grow by so many over it");
  app.add_option("--csv", options.csv_file, "Write every reading here");
  CLI11_PARSE(app, argc, argv);
  if (options.cycles <= options.settle) {
    std::fprintf(stderr, "soak: --cycles %d must be more than --settle %d\n", options.cycles,
                 options.settle);
    return 2;
  }
  Soak soak(options);
  const absl::Status status = soak.Run();
  if (!status.ok()) {
    std::fprintf(stderr, "soak: %s\n", status.ToString().c_str());
    return 1;
  }
  const bool flat = soak.Verdict();
  std::printf("%d cycles of %zu packs: %s\n", options.cycles, options.packs.size(),
              flat ? "flat" : "the daemon grew");
  return flat ? 0 : 1;
}

}  // namespace
}  // namespace mk

int main(int argc, char** argv) { return mk::Main(argc, argv); }
