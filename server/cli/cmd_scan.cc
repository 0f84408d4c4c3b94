// mk scan: which of the five blind spots models hit, and so whether they are worth kernels of their
// own. Local; needs no daemon, and for ONNX files no Python.
#include "server/cli/cmd_scan.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <optional>

#include "server/cli/front.h"
#include "verify/scan/scan.h"

namespace mk::cli {
namespace {

constexpr char kMore[] =
    "  S1 data-dependent shape or control flow    S4 non-standard attention topology\n"
    "  S2 non-affine memory access                S5 recurrent state or variable length\n"
    "  S3 complex or special operators (rotary embedding, Fourier)\n"
    "\n"
    "Two or more: a candidate for kernels of its own. One: watch. None: leave it to the official "
    "path.\n"
    "unknown: an operator of a foreign domain hides what is there.\n"
    "\n"
    "  mk scan model.onnx                      what was found, and where\n"
    "  mk scan *.onnx                          a table\n"
    "  mk scan a.onnx b.onnx --together        parts of one model, and the answer for all of it\n"
    "  mk scan model.onnx --html scan.html     a page to look at\n"
    "  mk scan model.onnx --trt 10.3           also what this TensorRT's parser documents as "
    "unsupported\n"
    "  mk scan model.onnx --json               for scripts\n"
    "\n"
    "A torch.export program and a config of transformers are exported to ONNX first, by the Python "
    "of\n"
    "--python (with torch, onnx, onnxscript; transformers), in a child process with caps and "
    "without a network:\n"
    "\n"
    "  mk scan model.pt2 --python VENV/bin/python        what torch.export.save wrote\n"
    "  mk scan config.json --python VENV/bin/python      random weights, nothing is fetched; or "
    "its folder\n"
    "  mk scan config.json --layers 2 --keep-onnx DIR    no deeper than 2; keeps model.onnx\n"
    "\n"
    "Weights are not read, and external data is judged by its header. Exit code 0: scanned, "
    "whatever the\n"
    "answer; 1: external data is missing or refused, or the model could not be exported; 2: a file "
    "cannot\n"
    "be read or is no model, or --python lacks what the export needs.";

struct Options {
  std::vector<std::string> models;
  std::string html, trt;
  bool all = false, together = false;
  FrontOptions front;
};

// The files as parts of one model: what any of them hits, the model hits.
scan::Report Together(const std::vector<scan::Report>& reports) {
  scan::Report sum;
  sum.file = "(together)";
  for (const scan::Report& report : reports) {
    for (size_t spot = 0; spot < scan::kSpots; ++spot) {
      sum.counts[spot] += report.counts[spot];
      sum.site_counts[spot] += report.site_counts[spot];
    }
    sum.nodes += report.nodes;
    sum.hidden_count += report.hidden_count;
  }
  return sum;
}

std::string Overview(std::vector<scan::Report> reports, bool together) {
  if (together) reports.push_back(Together(reports));
  Table table({"MODEL", "ANSWER", "S1", "S2", "S3", "S4", "S5", "HIDDEN", "NODES"});
  for (const scan::Report& report : reports) {
    std::vector<std::string> row = {report.file, scan::AnswerText(report.answer())};
    for (const int64_t count : report.counts) row.push_back(count ? std::to_string(count) : "");
    row.push_back(report.hidden_count ? std::to_string(report.hidden_count) : "");
    row.push_back(std::to_string(report.nodes));
    table.Row(std::move(row));
  }
  return table.Text() +
         "Numbers are structures, not nodes; one model alone, or --all, shows where.\n";
}

absl::StatusOr<scan::Report> ScanOnnx(const std::string& path, const Options& options) {
  struct stat facts = {};
  const uint64_t size = stat(path.c_str(), &facts) == 0 ? static_cast<uint64_t>(facts.st_size) : 0;
  Progress progress("scanning " + path, size);
  scan::ScanOptions how;
  how.trt_version = options.trt;
  how.progress = [&](int64_t bytes) { progress.Set(static_cast<uint64_t>(bytes)); };
  return scan::ScanFile(path, how);
}

// What there is to say of one model, or the exit code where it is none; what went wrong is told.
struct Scanned {
  std::optional<scan::Report> report;
  int code = kOk;
};

Scanned ScanExported(const Globals& globals, const std::string& source, const Options& options) {
  TemporaryFolder temporary;
  if (options.front.keep.empty() && !temporary.Make())
    return {{}, ReportUsage(globals, "a temporary folder cannot be made: TMPDIR names another")};
  const std::string& folder = options.front.keep.empty() ? temporary.path() : options.front.keep;
  FrontAnswer answer = ExportByFront(source, folder, options.front);
  if (answer.code != kOk) {
    const std::string message = source + ": " + answer.message;
    return {{},
            answer.code == kNo ? ReportNo(globals, "NOT_EXPORTED", message, answer.hint)
                               : ReportUsage(globals, message, answer.hint)};
  }
  auto report = ScanOnnx(answer.onnx, options);
  if (!report.ok()) {
    return {{},
            ReportUsage(globals, source + ", exported: " + std::string(report.status().message()))};
  }
  report->file = source;
  report->origin = std::move(answer.origin);
  report->hidden_count += static_cast<int64_t>(answer.hidden.size());
  for (scan::Remark& remark : answer.hidden) report->hidden.push_back(std::move(remark));
  if (!options.front.keep.empty()) std::cerr << "wrote " << answer.onnx << "\n";
  return {*std::move(report), kOk};
}

Scanned ScanOne(const Globals& globals, const std::string& path, const Options& options) {
  if (NeedsFront(path)) return ScanExported(globals, path, options);
  auto report = ScanOnnx(path, options);
  if (!report.ok()) return {{}, ReportUsage(globals, std::string(report.status().message()))};
  return {*std::move(report), kOk};
}

int Run(const Globals& globals, const Options& options) {
  if (!options.front.keep.empty() && options.models.size() != 1)
    return ReportUsage(globals, "--keep-onnx is for one model at a time");
  std::vector<scan::Report> reports;
  int code = kOk;
  for (const std::string& path : options.models) {
    Scanned scanned = ScanOne(globals, path, options);
    auto& report = scanned.report;
    if (!report) {
      code = std::max(code, scanned.code);
      continue;
    }
    for (const scan::Remark& problem : report->problems) {
      std::cerr << "mk: " << path << ": external data of '" << problem.node
                << "' refused: " << problem.text << "\n";
      if (code == kOk) code = kNo;
    }
    reports.push_back(*std::move(report));
  }
  if (reports.empty()) return code;
  if (!options.html.empty()) {
    std::ofstream page(options.html, std::ios::binary);
    page << scan::Html(reports);
    if (!page.flush()) return ReportUsage(globals, "cannot write " + options.html);
    std::cerr << "wrote " << options.html << "\n";
  }
  if (globals.json) {
    if (options.together) reports.push_back(Together(reports));
    std::cout << scan::Json(reports);
  } else if (options.models.size() > 1) {
    if (options.all) {
      for (const scan::Report& report : reports) std::cout << scan::Text(report, true) << "\n";
    }
    std::cout << Overview(reports, options.together);
  } else {
    std::cout << scan::Text(reports[0], options.all);
  }
  return code;
}

void AddFrontOptions(CLI::App* command, FrontOptions* front) {
  command
      ->add_option("--python", front->python,
                   "For models that are no ONNX file: a Python with torch, onnx, onnxscript")
      ->capture_default_str();
  command->add_option("--keep-onnx", front->keep, "Keep the exported model.onnx in this folder");
  command
      ->add_option("--exporter", front->exporter,
                   "new: torch.onnx.export(dynamo=True); old: a trace; auto: the new one, and for "
                   "a config the old one where that stops")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "new", "old"}));
  command->add_option("--layers", front->layers, "Cut the depths of a config to this")
      ->check(CLI::Range(1, 10000));
  OneEach(command->add_option("--shapes", front->shapes,
                              "Shape of an input of a config: NAME=1x3x224x224; repeatable"));
  command->add_option("--export-seconds", front->seconds, "Cap on the time of an export")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 86400.0));
  command
      ->add_option("--export-memory", front->memory_gib,
                   "Cap on the memory of an export in GiB (default: three quarters of what is "
                   "available)")
      ->check(CLI::Range(0.1, 4096.0));
}

}  // namespace

void AddScan(CLI::App& app, Globals& globals, int* exit_code) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("scan", "Which of the five blind spots does a model hit?");
  command->footer(kMore);
  command
      ->add_option("MODEL", options->models, "ONNX files, .pt2, config.json; several give a table")
      ->required();
  command->add_option("--html", options->html, "Also write one self-contained page");
  command
      ->add_option(
          "--trt", options->trt,
          "Also list what the ONNX parser of this TensorRT documents as unsupported or restricted")
      ->check(CLI::IsMember({"8.6", "10.3", "10.13", "10.16"}));
  command->add_flag("--together", options->together,
                    "The files are parts of one model: also answer for their union");
  command->add_flag("--all", options->all, "List every site and remark");
  AddFrontOptions(command, &options->front);
  command->callback([&globals, options, exit_code] { *exit_code = Run(globals, *options); });
}

}  // namespace mk::cli
