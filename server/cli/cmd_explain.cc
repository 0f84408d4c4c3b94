// mk explain: what a pack would launch on a board, how long by the roofline, and how much memory.
// The pack's code runs in a process of its own, on the planning device.
#include "server/cli/cmd_explain.h"

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/program.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/device/open_device.h"
#include "core/device/planning/board.h"
#include "core/loader/plan_pack.h"
#include "core/loader/repository.h"
#include "core/loader/sealed_pack.h"
#include "server/cli/explain_report.h"

namespace mk::cli {
namespace {

constexpr uint64_t kMaxSmallBytes = uint64_t{256} << 20;
constexpr double kMeasureTimeoutSeconds = 120;
// What a graph's node is taken to cost: nobody has measured it for us yet.
constexpr double kAssumedLaunchUs = 2;

constexpr char kMore[] =
    "  mk explain run/packs/vmamba-pico                      on AGX Orin 64GB\n"
    "  mk explain run/packs/vmamba-pico/1 --board orin-nx-8gb --board thor-t5000\n"
    "  mk explain run/packs/vmamba-tiny --board all --input image=512x512x3\n"
    "  mk explain run/packs/vmamba-pico --html plan.html     a bar per launch, memory over the "
    "run\n"
    "  mk explain run/packs/vmamba-pico --board orin-nx-8gb --measure cuda --all\n"
    "                                                        on that board: what each launch took\n"
    "  mk explain --boards                                   the boards, their rates and sources\n"
    "\n"
    "Predicted is: the larger of moving each launch's bytes and computing its FLOPs at "
    "the board's\n"
    "rates, with whole rounds of blocks over its SMs. No GPU is needed; the pack must run on "
    "\"cuda\".\n"
    "Exit code 0: explained; 2: wrong flags or files; 4: the pack or the inputs were refused.";

struct Options {
  std::string pack, html, probe, measure;
  std::vector<std::string> boards, inputs;
  double launch_us = kAssumedLaunchUs;
  int runs = PlanOptions().runs;
  bool all = false, list = false;
};

struct Found {
  std::string root, name;
  int64_t version = 0;  // 0: the latest
};

// <root>/<name> or <root>/<name>/<version>, whether it is there or not.
Found Split(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const auto parent = [](const std::string& p) {
    const size_t slash = p.rfind('/');
    return slash == p.npos ? std::string(".") : slash == 0 ? std::string("/") : p.substr(0, slash);
  };
  const auto last = [](const std::string& p) { return p.substr(p.rfind('/') + 1); };
  Found found;
  if (absl::SimpleAtoi(last(path), &found.version)) path = parent(path);
  found.name = last(path);
  found.root = parent(path);
  return found;
}

absl::StatusOr<std::shared_ptr<const SealedPack>> ReadPack(const std::string& path,
                                                           std::string* title) {
  Found found = Split(path);
  if (!IsPlainName(found.name)) {
    return absl::InvalidArgumentError(absl::StrCat("'", Printable(path),
                                                   "' is no pack's folder: give REPOSITORY/NAME or "
                                                   "REPOSITORY/NAME/VERSION"));
  }
  MK_ASSIGN_OR_RETURN(const auto repository, Repository::Open(found.root));
  MK_ASSIGN_OR_RETURN(const Repository::Versions versions, repository->ListVersions(found.name));
  if (found.version == 0) {
    if (versions.complete.empty()) {
      return absl::NotFoundError(
          absl::StrCat("'", Printable(path), "' has no version with a manifest"));
    }
    found.version = versions.complete.back();
  }
  *title = absl::StrCat(found.name, " ", found.version);
  MK_ASSIGN_OR_RETURN(const Fd folder, repository->OpenVersion(found.name, found.version));
  return SealedPack::Read(folder.get(), found.name, found.version, kMaxSmallBytes, "mk-explain");
}

int ListBoards(const Globals& globals) {
  if (globals.json) {
    nlohmann::json rows = nlohmann::json::array();
    for (const Board& b : Boards()) {
      rows.push_back({{"name", b.name},
                      {"title", b.title},
                      {"sm", b.limits->sm},
                      {"sm_count", b.sm_count},
                      {"clock_hz", b.clock_hz},
                      {"tensor_flops_per_s", b.tensor.per_second},
                      {"tensor_basis", RateBasisName(b.tensor.basis)},
                      {"dram_bytes_per_s", b.dram.per_second},
                      {"dram_basis", RateBasisName(b.dram.basis)},
                      {"memory_bytes", b.memory_bytes},
                      {"source", b.source}});
    }
    std::cout << JsonText(rows);
    return kOk;
  }
  Table table({"BOARD", "SM", "SMS", "GHZ", "TENSOR TFLOPS", "MEMORY GB/S", "MEMORY", "SOURCE"});
  for (const Board& b : Boards()) {
    table.Row(
        {b.name, std::to_string(b.limits->sm), std::to_string(b.sm_count),
         Fixed(b.clock_hz / 1e9, 3),
         absl::StrCat(Fixed(b.tensor.per_second / 1e12, 1), " ", RateBasisName(b.tensor.basis)),
         absl::StrCat(Fixed(b.dram.per_second / 1e9, 1), " ", RateBasisName(b.dram.basis)),
         HumanBytes(b.memory_bytes), b.source});
  }
  std::cout << table.Text();
  return kOk;
}

absl::StatusOr<std::vector<Explained>> ExplainAll(const Options& options,
                                                  const std::vector<const Board*>& boards) {
  std::string title;
  MK_ASSIGN_OR_RETURN(const auto pack, ReadPack(options.pack, &title));
  PlanOptions plan_options;
  for (const std::string& text : options.inputs) {
    MK_ASSIGN_OR_RETURN(PlannedInput input, ParsePlannedInput(text));
    plan_options.inputs.push_back(std::move(input));
  }
  ProbeOptions probe;
  probe.path = options.probe.empty() ? BesideOwnProgram("mergekernel-probe") : options.probe;
  if (!options.measure.empty()) {
    plan_options.measure_on = options.measure;
    plan_options.runs = options.runs;
    probe.timeout_seconds = kMeasureTimeoutSeconds;
    probe.environment = DriverEnvironment();
  }
  std::vector<Explained> explained;
  Progress progress("planning", boards.size());
  for (const Board* board : boards) {
    plan_options.board = board->name;
    MK_ASSIGN_OR_RETURN(mergekernel::v1::Plan plan, RunPlan(*pack, probe, plan_options));
    explained.push_back(Explain(title, *board, std::move(plan), options.launch_us * 1e-6));
    progress.Set(explained.size());
  }
  return explained;
}

int Run(const Globals& globals, const Options& options) {
  if (options.list) return ListBoards(globals);
  if (options.pack.empty()) {
    return ReportUsage(globals, "explain: which pack?", "mk explain REPOSITORY/NAME");
  }
  std::vector<const Board*> boards;
  for (const std::string& name : options.boards) {
    if (name == "all") {
      for (const Board& board : Boards()) boards.push_back(&board);
      continue;
    }
    const auto board = FindBoard(name);
    if (!board.ok()) return ReportUsage(globals, std::string(board.status().message()));
    boards.push_back(*board);
  }
  if (!options.measure.empty() && boards.size() != 1) {
    return ReportUsage(globals, "explain: --measure wants one --board: the one that the device is");
  }
  const auto explained = ExplainAll(options, boards);
  if (!explained.ok()) {
    return Report(globals, grpc::Status(static_cast<grpc::StatusCode>(explained.status().code()),
                                        std::string(explained.status().message())));
  }
  if (!options.html.empty()) {
    std::ofstream page(options.html, std::ios::binary);
    page << ExplainHtml(*explained);
    if (!page.flush()) return ReportUsage(globals, "cannot write " + options.html);
    std::cerr << "wrote " << options.html << "\n";
  }
  if (globals.json) {
    nlohmann::json rows = nlohmann::json::array();
    for (const Explained& e : *explained) rows.push_back(ExplainJson(e));
    std::cout << JsonText(rows);
  } else if (explained->size() == 1) {
    std::cout << ExplainText(explained->front(), options.all);
  } else {
    std::cout << ExplainTable(*explained);
  }
  return kOk;
}

}  // namespace

void AddExplain(CLI::App& app, Globals& globals, int* exit_code) {
  auto options = std::make_shared<Options>();
  options->boards = {"agx-orin-64gb"};
  auto* command = app.add_subcommand(
      "explain", "What would a pack launch on a board, and how long should it take? (predicted)");
  command->footer(kMore);
  command->add_option("PACK", options->pack, "Folder of a pack, or of one version of it");
  OneEach(command->add_option("--board", options->boards, "Board, or 'all'; repeatable")
              ->capture_default_str());
  OneEach(
      command->add_option("--input", options->inputs,
                          "NAME=DIMxDIM..: shape of an input; default: the pack's golden case"));
  command
      ->add_option("--launch-us", options->launch_us,
                   "Microseconds taken for a launch beside its work; an assumption")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1000.0));
  command->add_option(
      "--measure", options->measure,
      "Also run it on this device (cuda, cuda:1), which --board names, and say what "
      "each launch took");
  command->add_option("--runs", options->runs, "Runs that --measure takes the median of")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  command->add_option("--html", options->html, "Also write one self-contained page");
  command->add_option("--probe-path", options->probe,
                      "mergekernel-probe; default: beside this program");
  command->add_flag("--all", options->all, "Every launch a row of its own");
  command->add_flag("--boards", options->list, "List the boards and leave");
  command->callback([&globals, options, exit_code] { *exit_code = Run(globals, *options); });
}

}  // namespace mk::cli
